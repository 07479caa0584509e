"""Parts of steps that need no cluster: who owns power, what others put into a machine, marks of a restart."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from konverge.objects import ObjectMeta, from_dict, to_dict
from konverge.operators.wukong.effective_spec import wanted_power
from konverge.operators.wukong.kinds import VirtualMachine
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.reconciler import WukongReconciler
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.status import READY, NetworkStatus, VolumeStatus, WukongStatus, drop, say
from konverge.operators.wukong.steps.machine import PARTS, with_foreign
from konverge.operators.wukong.steps.observe import _interfaces, _power, observe
from konverge.operators.wukong.steps.power import GIVEN, HALTED_FROM, overruled, strategy_for, strategy_mark
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import Result
from tests.operators.wukong.test_phases import instance, machine
from tests.operators.wukong.world import SPEC


def spec(**given: Any) -> WukongSpec:
    return from_dict(WukongSpec, SPEC | given)


@pytest.mark.spec("W-13")
@pytest.mark.parametrize(
    ("given", "live", "expected"),
    [
        ({}, None, "Always"),
        ({}, "Halted", "Halted"),
        ({}, "Manual", "Manual"),
        ({"startStrategy": {"autoStart": False}}, None, "Halted"),
        ({"startStrategy": {"autoStart": False}}, "Always", "Always"),
        ({"startStrategy": {"runStrategy": "Manual"}}, None, "Manual"),
        ({"powerState": "Running"}, "Halted", "Always"),
        ({"powerState": "Paused"}, "Halted", "Always"),
        ({"powerState": "Stopped"}, "Always", "Halted"),
        ({"running": False}, "Always", "Halted"),
        ({"running": True}, "Halted", "Always"),
        ({"running": False, "powerState": "Running"}, "Halted", "Always"),
        ({"powerState": "Running", "startStrategy": {"runStrategy": "RerunOnFailure"}}, None, "RerunOnFailure"),
        ({"powerState": "Running", "startStrategy": {"runStrategy": "Manual"}}, None, "Always"),
        ({"powerState": "Running", "highAvailability": {"restartPolicy": "Never"}}, None, "Once"),
    ],
)
def test_the_strategy_follows_what_is_declared_or_else_what_is(
    given: dict[str, Any], live: str | None, expected: str
) -> None:
    desired = spec(**given)
    present = machine(strategy=live) if live is not None else None
    assert strategy_for(desired, present) == expected
    assert strategy_for(desired, present, halt=True) == "Halted"
    if present is not None:
        stopped = (live == "Halted") != (expected == "Halted")
        assert overruled(desired, present, expected) == stopped
    assert (wanted_power(desired) == "Paused") == (given.get("powerState") == "Paused")


ON_FAILURE: dict[str, Any] = {"highAvailability": {"restartPolicy": "OnFailure"}}


@pytest.mark.spec("W-37")
@pytest.mark.parametrize(
    ("given", "live", "mark", "expected", "marked"),
    [
        (ON_FAILURE, None, "", "RerunOnFailure", "RerunOnFailure"),
        (ON_FAILURE, "Always", "", "RerunOnFailure", "RerunOnFailure"),  # the spec has changed
        ({}, "RerunOnFailure", "RerunOnFailure", "Always", ""),  # and back
        ({"startStrategy": {"runStrategy": "Manual"}}, "Always", "", "Manual", "Manual"),
        (ON_FAILURE, "Always", "RerunOnFailure", "Always", "RerunOnFailure"),  # a user has changed the machine
        ({}, "RerunOnFailure", "", "RerunOnFailure", ""),
        (ON_FAILURE, "Halted", "", "Halted", ""),  # it stays off, and gets it when it is on
        ({}, "Halted", "RerunOnFailure", "Halted", "RerunOnFailure"),
        (ON_FAILURE | {"startStrategy": {"autoStart": False}}, None, "", "Halted", ""),
        (ON_FAILURE | {"startStrategy": {"autoStart": False}}, "Always", "", "RerunOnFailure", "RerunOnFailure"),
        (ON_FAILURE | {"powerState": "Running"}, "Always", "", "RerunOnFailure", "RerunOnFailure"),
        (ON_FAILURE | {"powerState": "Stopped"}, "RerunOnFailure", "RerunOnFailure", "Halted", "RerunOnFailure"),
        ({"powerState": "Running", "startStrategy": {"runStrategy": "Manual"}}, "Manual", "Manual", "Always", ""),
    ],
)
def test_another_strategy_in_the_spec_reaches_a_machine_that_is_on(
    given: dict[str, Any], live: str | None, mark: str, expected: str, marked: str
) -> None:
    desired = spec(**given)
    present = machine(strategy=live) if live is not None else None
    if present is not None and mark:
        present.metadata.annotations[GIVEN] = mark
    assert strategy_for(desired, present) == expected
    assert strategy_mark(desired, present, expected) == ({GIVEN: marked} if marked else {})


@pytest.mark.spec("W-37")
def test_a_strategy_that_changes_during_a_restore_is_there_after_it() -> None:
    desired, present = spec(**ON_FAILURE), machine(strategy="Halted")
    present.metadata.annotations[HALTED_FROM] = "Always"
    assert strategy_mark(desired, present, strategy_for(desired, present, halt=True)) == {}
    assert strategy_for(desired, present) == "RerunOnFailure"
    present.metadata.annotations[HALTED_FROM] = "Halted"
    assert strategy_for(desired, present) == "Halted", "it was off before"


@pytest.mark.spec("W-07")
def test_what_others_plugged_in_stays_and_what_was_ours_goes() -> None:
    def template(*names: str) -> dict[str, Any]:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        return {"spec": {"template": {"spec": {"domain": {"devices": {"disks": [{"name": name} for name in names]}},
                                               "volumes": volumes}}}}  # fmt: skip

    live = template("system", "old", "hot")
    live["spec"]["template"]["spec"]["volumes"][2] = {
        "name": "hot",
        "dataVolume": {"name": "hot", "hotpluggable": True},
    }
    live["spec"]["template"]["spec"]["networks"] = [{"name": "plugged", "multus": {"networkName": "x"}}]
    desired = from_dict(VirtualMachine, template("system"))
    live["metadata"] = {"annotations": {PARTS: "old,system"}}
    applied = with_foreign(desired, live)
    assert applied.metadata.annotations[PARTS] == "system"
    made = applied.spec["template"]["spec"]
    assert [volume["name"] for volume in made["volumes"]] == ["system", "hot"]
    assert made["volumes"][1] == {"name": "hot", "dataVolume": {"name": "hot", "hotpluggable": True}}
    assert [disk["name"] for disk in made["domain"]["devices"]["disks"]] == ["system", "hot"]
    assert made["networks"] == [{"name": "plugged", "multus": {"networkName": "x"}}]
    assert with_foreign(desired, None).spec == to_dict(desired)["spec"]
    assert "networks" not in with_foreign(desired, template("system")).spec["template"]["spec"]


@pytest.mark.spec("W-08")
@pytest.mark.virtual
async def test_addresses_are_kept_while_the_machine_runs_and_no_longer() -> None:
    status = WukongStatus(networks=[NetworkStatus(name="default"), NetworkStatus(name="lan", primary=True)])
    shown = [{"name": "default", "ipAddress": "10.0.0.1", "mac": "02:00:00:00:00:01"}, {"ipAddress": "10.9.9.9"}]
    _interfaces(status, instance("Running", interfaces=shown))
    assert (status.primary_ip, status.networks[0].mac_address) == ("10.0.0.1", "02:00:00:00:00:01")
    both = [*shown, {"name": "lan", "ipAddresses": ["192.168.1.9", "fe80::1"], "interfaceName": "eth1"}]
    _interfaces(status, instance("Running", interfaces=both))
    assert (status.primary_ip, status.networks[1].ip_addresses) == ("192.168.1.9", ["192.168.1.9", "fe80::1"])
    _interfaces(status, instance("Running", interfaces=[{"name": "default"}, {"name": "lan", "ipAddress": ""}]))
    assert status.primary_ip == "192.168.1.9", "an address that the agent forgets for a moment is kept"
    _interfaces(status, None)
    assert (status.primary_ip, status.networks[1].ip_addresses) == ("", [])


@pytest.mark.spec("W-08")
@pytest.mark.virtual
async def test_power_as_it_is_seen() -> None:
    assert _power(None, None) == ""
    assert _power(machine(), None) == "Starting"
    assert _power(machine(strategy="Halted"), None) == "Stopped"
    assert _power(machine(), instance("Scheduling")) == "Starting"
    assert _power(machine(), instance("Running")) == "Running"
    assert _power(machine(), instance("Running", ("Paused", "True", ""))) == "Paused"
    assert _power(machine(), instance("Running", deleting=True)) == "Stopping"
    assert _power(machine(), instance("Failed")) == "Stopped"


@pytest.mark.spec("W-09")
@pytest.mark.virtual
async def test_a_conditions_time_moves_with_its_status_only() -> None:
    status = WukongStatus()
    assert say(status, READY, False, "Waiting", "x", generation=1)
    first = status.conditions[0].last_transition_time
    await asyncio.sleep(10)
    assert not say(status, READY, False, "Waiting", "x", generation=1)
    assert say(status, READY, False, "Other", "y", generation=2)
    assert status.conditions[0].last_transition_time == first
    assert say(status, READY, True, "Fine", "", generation=2)
    assert status.conditions[0].last_transition_time != first
    drop(status, READY)
    assert status.conditions == []


@pytest.mark.spec("W-11")
@pytest.mark.virtual
async def test_a_round_that_takes_too_long_comes_back_in_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(state: Any) -> bool:
        await asyncio.sleep(3600)
        return False

    monkeypatch.setattr("konverge.operators.wukong.reconciler.finalizer", hang)
    ctx: Any = SimpleNamespace(deleting=False, log=logging.getLogger("test"))
    assert await WukongReconciler(Options()).reconcile(ctx) == Result(requeue_after=10.0)


@pytest.mark.spec("W-05")
@pytest.mark.virtual
async def test_a_round_that_was_broken_off_forgets_nothing() -> None:
    """What is on record about a disk decides whether a missing claim is a loss."""
    status = WukongStatus(volumes=[VolumeStatus(name="system", bound=True)], networks=[NetworkStatus(name="default")])
    wukong = Wukong(metadata=ObjectMeta(name="web"), spec=spec(), status=status)
    state = ReconcileState(SimpleNamespace(obj=wukong), Options())  # type: ignore[arg-type]
    state.wukong = wukong
    await observe(state)
    assert [volume.bound for volume in status.volumes] == [True]
    assert [network.name for network in status.networks] == ["default"]
