"""What a spec means where several fields have a say."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.wukong import effective_spec
from tests.operators.wukong.specs import DISK, net, spec, wukong


@pytest.mark.spec("W-13")
@pytest.mark.parametrize(
    ("given", "power", "strategy"),
    [
        ({}, "Running", "Always"),
        ({"startStrategy": {"autoStart": False}}, "Stopped", "Halted"),
        ({"startStrategy": {"autoStart": False}, "running": True}, "Running", "Always"),
        ({"running": False}, "Stopped", "Halted"),
        ({"running": False, "powerState": "Running"}, "Running", "Always"),
        ({"powerState": "Stopped", "startStrategy": {"runStrategy": "Manual"}}, "Stopped", "Halted"),
        ({"powerState": "Paused"}, "Paused", "Always"),
        ({"startStrategy": {"runStrategy": "Manual"}}, "Running", "Manual"),
        ({"highAvailability": {"restartPolicy": "Always"}}, "Running", "Always"),
        ({"highAvailability": {"restartPolicy": "OnFailure"}}, "Running", "RerunOnFailure"),
        ({"highAvailability": {"restartPolicy": "Never"}}, "Running", "Once"),
        ({"highAvailability": {"antiAffinity": True}}, "Running", "Always"),
    ],
)
def test_power(given: dict[str, Any], power: str, strategy: str) -> None:
    result = wukong(spec(**given)).spec
    assert (effective_spec.wanted_power(result), effective_spec.run_strategy(result)) == (power, strategy)


@pytest.mark.spec("W-07")
@pytest.mark.parametrize(
    ("networks", "order"),
    [
        ([], ["default"]),
        ([{"name": "default"}], ["default"]),
        ([{"name": "lan", "type": "bridge"}], ["default", "lan"]),
        ([{"name": "lan", "type": "bridge"}, {"name": "default"}], ["lan", "default"]),
        ([{"name": "a", "type": "ovs"}, {"name": "b", "type": "ovs", "primary": True}], ["b", "a"]),
        ([{"name": "default", "nadName": "lan"}], ["default"]),
    ],
)
def test_the_pod_network_comes_along_unless_another_takes_its_place(networks: list[Any], order: list[str]) -> None:
    assert [item.name for item in effective_spec.attached(wukong(spec(networks=networks)).spec)] == order


@pytest.mark.spec("W-04")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, False),
        ({"physicalInterface": "ens192"}, True),
        ({"physicalInterface": "ens192", "nodeNetwork": {"manage": True}}, True),
        ({"physicalInterface": "ens192", "nodeNetwork": {"manage": False}}, False),
    ],
)
def test_a_bridge_is_made_where_an_interface_is_named(given: dict[str, Any], wanted: bool) -> None:
    assert effective_spec.wants_policy(wukong(net(**given)).spec.networks[0]) is wanted


@pytest.mark.spec("W-10")
def test_what_outlives_the_machine() -> None:
    disks = [
        DISK,
        {"name": "kept", "size": "1Gi", "deletePolicy": "Retain"},
        {"name": "gone", "size": "1Gi", "deletePolicy": "Delete"},
        {"name": "theirs", "existingClaim": "x"},
    ]
    for policy, kept in (("Delete", [False, True, False, True]), ("Retain", [True, True, False, True])):
        result = wukong(spec(disks=disks, deletePolicy=policy)).spec
        assert [effective_spec.is_kept(result, disk) for disk in result.disks] == kept


@pytest.mark.spec("W-13")
def test_which_secrets_are_read_and_which_are_mounted() -> None:
    users = [{"name": "ann", "sshKeySecret": "ann"}, {"name": "bob", "passwordSecret": {"name": "bob"}}]
    by_cloud_init = wukong(spec(users=users, sshKeySecret="team")).spec
    assert effective_spec.secrets_read(by_cloud_init) == {"ann", "bob", "team"}
    assert effective_spec.secrets_mounted(by_cloud_init) == set()
    by_agent = wukong(spec(users=users, sshKeySecret="team", sshKeyPropagation="guestAgent")).spec
    assert effective_spec.secrets_read(by_agent) == {"ann", "bob"}
    assert effective_spec.secrets_mounted(by_agent) == {"team"}
    windows = wukong(spec(guest="windows", bootstrap={"type": "sysprep", "sysprepSecret": "answers"})).spec
    assert effective_spec.secrets_read(windows) == set()
    assert effective_spec.secrets_mounted(windows) == {"answers"}
    assert effective_spec.secrets_mounted(wukong(spec(bootstrap={"userDataSecret": "mine"})).spec) == {"mine"}
