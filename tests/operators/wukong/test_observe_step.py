"""The first steps and step 9 alone: what is accepted, and what KubeVirt reports as it goes into the status."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import AlreadyExists, BadRequest, Conflict, Forbidden, InternalError, Invalid, MethodNotAllowed
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import Status, StatusCause, StatusDetails
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.reconciler import WukongReconciler
from konverge.operators.wukong.resource import FINALIZER
from konverge.operators.wukong.status import GuestOs, NetworkStatus, VolumeStatus, WukongStatus
from konverge.operators.wukong.steps.begin import validate
from konverge.operators.wukong.steps.machine import look
from konverge.operators.wukong.steps.observe import _power, observe
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import Result
from tests.operators.wukong.specs import Spec, disk, spec
from tests.operators.wukong.stage import OLD, Stage, condition, controlled_by, made, refused, vm, vmi
from tests.operators.wukong.staged_disks import claim

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-02", "W-08")]

AT_ONCE, SOON, LATER = Result(requeue=True), Result(requeue_after=10.0), Result(requeue_after=30.0)


# ------------------------------------------------------------------ observe


async def seen(*objects: Any, status: dict[str, Any] | None = None, given: Spec | None = None) -> WukongStatus:
    stage = Stage(given, *objects, status=status)
    await look(stage.state)
    await observe(stage.state)
    return stage.state.status


async def test_a_machine_that_runs_is_shown_with_where_and_how() -> None:
    info = {"name": "Fedora", "prettyName": "Fedora Linux 40", "version": "40", "kernelRelease": "6.8"}
    conditions = [condition("AgentConnected"), condition("LiveMigratable", "False")]
    status = await seen(vm(), vmi(nodeName="node-1", conditions=conditions, guestOSInfo=info))
    assert (status.vm_name, status.node_name, status.power_state) == ("web-vm", "node-1", "Running")
    assert (status.agent_connected, status.migratable) == (True, False)
    assert status.guest_os == GuestOs(name="Fedora Linux 40", version="40", kernel="6.8")
    assert status.console is not None
    assert status.console.vnc == "virtctl vnc web-vm --namespace team-a"
    assert status.console.serial == "virtctl console web-vm --namespace team-a"
    assert status.pending_changes == []
    for word, expected in (("True", True), ("Unknown", False)):
        assert (await seen(vm(), vmi(conditions=[condition("LiveMigratable", word)]))).migratable is expected


async def test_a_machine_that_is_off_is_shown_without() -> None:
    before = {
        "vmName": "web-vm", "nodeName": "node-1", "powerState": "Running", "agentConnected": True, "migratable": True,
        "guestOS": {"name": "x"}, "console": {"vnc": "x"}, "pendingChanges": ["cpu"], "primaryIP": "10.0.0.1",
        "networks": [{"name": "default", "ipAddress": "10.0.0.1", "ipAddresses": ["10.0.0.1"], "interface": "eth0"}],
    }  # fmt: skip
    status = await seen(vm("Halted", conditions=[condition("RestartRequired")]), status=before)
    assert (status.vm_name, status.node_name, status.power_state) == ("web-vm", "", "Stopped")
    assert (status.agent_connected, status.migratable, status.guest_os, status.console) == (False, None, None, None)
    assert (status.pending_changes, status.primary_ip) == ([], "")
    (network,) = status.networks
    assert (network.ip_address, network.ip_addresses, network.interface) == ("", [], "")
    assert (await seen(status=before)).vm_name == ""
    left = await seen(vmi(nodeName="node-1"), status=before)
    assert (left.vm_name, left.power_state, left.node_name, left.pending_changes) == ("", "", "node-1", [])


async def test_what_the_agent_does_not_say_for_a_moment_is_kept() -> None:
    before = {"guestOS": {"name": "Fedora"}}
    for info in (None, {"version": "40"}, {}):
        status = await seen(vm(), vmi(**({} if info is None else {"guestOSInfo": info})), status=before)
        assert status.guest_os == GuestOs(name="Fedora")
    for info in ({"name": "Alpine"}, {"prettyName": "Alpine"}):
        assert (await seen(vm(), vmi(guestOSInfo=info), status=before)).guest_os == GuestOs(name="Alpine")


async def test_a_machine_that_is_not_up_yet_has_no_console_and_no_addresses() -> None:
    interfaces = [{"name": "default", "ipAddress": "10.0.0.1"}]
    status = await seen(vm(), vmi("Scheduled", interfaces=interfaces), status={"networks": [{"name": "default"}]})
    assert (status.console, status.primary_ip) == (None, "")
    status = await seen(vm(), vmi(interfaces=interfaces), status={"networks": [{"name": "default"}]})
    assert status.primary_ip == "10.0.0.1"


async def test_changes_that_wait_are_listed_by_line() -> None:
    for message, expected in (
        ("cpu\n\nmemory", ["cpu", "memory"]),
        ("", ["the machine as KubeVirt runs it is an older one"]),
    ):
        machine = vm(conditions=[condition("RestartRequired", "True", "R", message)])
        assert (await seen(machine, vmi())).pending_changes == expected
    assert (await seen(vm(conditions=[condition("RestartRequired", "False", "R", "cpu")]), vmi())).pending_changes == []


async def test_the_addresses_of_an_interface() -> None:
    networks = {"networks": [{"name": "default", "macAddress": "old", "interface": "eth9"}, {"name": "lan"}]}
    interfaces = [
        {"name": "default", "ipAddresses": ["", "10.0.0.1", "fd00::1"], "ipAddress": "fd00::1", "mac": "new"},
        {"name": "lan", "ipAddress": "192.168.0.2", "interfaceName": "eth1"},
        {"name": "", "ipAddress": "1.1.1.1"},
    ]
    default, lan = (await seen(vm(), vmi(interfaces=interfaces), status=networks)).networks
    assert (default.ip_addresses, default.ip_address) == (["10.0.0.1", "fd00::1"], "fd00::1")
    assert (default.mac_address, default.interface) == ("new", "eth9")
    assert (lan.ip_addresses, lan.ip_address, lan.interface) == (["192.168.0.2"], "192.168.0.2", "eth1")
    bare = [{"name": "default", "ipAddresses": ["10.0.0.1"]}]
    default, _ = (await seen(vm(), vmi(interfaces=bare), status=networks)).networks
    assert (default.ip_address, default.mac_address) == ("10.0.0.1", "old")


async def test_a_primary_network_is_where_the_machine_is_reached() -> None:
    both = {"networks": [{"name": "a", "ipAddress": "1.1.1.1"}, {"name": "b", "ipAddress": "2.2.2.2", "primary": True}]}
    assert (await seen(vm(), vmi(), status=both)).primary_ip == "2.2.2.2"
    silent = {"networks": [{"name": "a", "ipAddress": "1.1.1.1"}, {"name": "b", "primary": True}]}
    assert (await seen(vm(), vmi(), status=silent)).primary_ip == "1.1.1.1"


async def test_power_of_machines_that_ended_or_are_left_to_others() -> None:
    assert _power(vm("Manual"), None) == "Stopped"
    assert _power(vm(""), None) == "Stopped"
    assert _power(vm("RerunOnFailure"), None) == "Starting"
    assert _power(vm("RerunOnFailure", printableStatus="Stopped", runStrategy="Halted"), None) == "Starting"
    for word, power in (("Stopped", "Stopped"), ("Provisioning", "Starting")):
        assert _power(vm("RerunOnFailure", printableStatus=word, runStrategy="RerunOnFailure"), None) == power
    assert _power(vm(), vmi("Succeeded")) == "Stopped"
    assert _power(vm(), vmi("Scheduling", meta={"deletionTimestamp": OLD})) == "Stopping"


async def test_disks_and_networks_are_shown_once_all_were_looked_at() -> None:
    stage = Stage(None, vm(), vmi())
    stage.state.volumes, stage.state.networks = [VolumeStatus(name="system")], [NetworkStatus(name="default")]
    await observe(stage.state)
    assert [volume.name for volume in stage.state.status.volumes] == ["system"]
    assert [network.name for network in stage.state.status.networks] == ["default"]
    stage.state.wukong = None
    stage.state.volumes = []
    await observe(stage.state)
    assert [volume.name for volume in stage.state.status.volumes] == ["system"]


# ------------------------------------------------------------------ the first steps


async def test_a_spec_that_cannot_be_acted_upon_is_trouble() -> None:
    for given, reason in (({"disks": 7}, "Malformed"), (spec(cpu=None, memory=None, disks=[{"name": "a"}]), "Invalid")):
        stage = Stage(given)
        stage.state.wukong = None
        await validate(stage.state)
        assert (stage.state.wukong, stage.reasons()) == (None, [reason])
        assert (stage.state.trouble[0].condition, stage.state.trouble[0].failed) == ("SpecValid", True)
    stage = Stage(None)
    stage.state.wukong = None
    await validate(stage.state)
    assert stage.state.wukong is not None
    assert stage.reasons() == []
    with pytest.raises(LookupError):
        _ = ReconcileState(Stage({"disks": 7}).ctx, Options()).spec


async def reconcile(stage: Stage, options: Options | None = None) -> Result | None:
    return await WukongReconciler(options or Options()).reconcile(stage.ctx)


@pytest.mark.spec("W-03")
async def test_a_new_wukong_gets_a_finalizer_then_a_status_and_then_its_parts() -> None:
    stage = Stage(None, meta={"finalizers": []})
    assert await reconcile(stage) == AT_ONCE
    (sent,) = stage.sent
    assert (sent.kind, sent.body["metadata"]["finalizers"]) == ("Wukong", [FINALIZER])
    stage = Stage(None)
    assert await reconcile(stage) == AT_ONCE
    assert stage.sent == []
    assert (stage.ctx.obj.status.phase, stage.said("Ready")) == ("Pending", ("False", "Accepted"))
    assert stage.ctx.obj.status.message == "accepted"
    stage = Stage(None, status={"phase": "Pending"})
    assert await reconcile(stage) == SOON
    assert stage.applied("PersistentVolumeClaim") == ["web-system"]


async def test_a_spec_that_cannot_be_read_builds_nothing_but_is_looked_at() -> None:
    stage = Stage({"disks": 7})
    assert await reconcile(stage) == LATER, "it is not accepted first"
    assert stage.ctx.obj.status.phase == "Error"
    stage = Stage({"disks": 7}, vm(), vmi(), status={"phase": "Running"})
    assert await reconcile(stage) == LATER
    assert (stage.sent, stage.ctx.obj.status.phase) == ([], "Error")
    assert (stage.said("SpecValid"), stage.said("Ready")) == (("False", "Malformed"), ("True", "VMRunning"))


async def test_a_wukong_that_is_paused_is_only_looked_at() -> None:
    before = {
        "phase": "Running",
        "volumes": [{"name": "system", "bound": True}],
        "networks": [{"name": "default", "nadName": "x"}],
    }
    stage = Stage(spec(paused=True, powerState="Stopped"), vm(), vmi(nodeName="node-1"), status=before)
    assert await reconcile(stage) is None
    assert stage.sent == []
    status = stage.ctx.obj.status
    assert (stage.said("Paused"), status.node_name, stage.events) == (
        ("True", "Spec"),
        "node-1",
        [("Normal", "Paused")],
    )
    assert ([volume.bound for volume in status.volumes], status.networks[0].nad_name) == ([True], "x")
    assert [call.subresource for call in stage.calls] == ["status"]
    again = Stage(
        spec(paused=True),
        vm(),
        vmi(),
        status=before
        | {"conditions": [condition("Paused", "True", "Spec", "spec.paused is true") | {"observedGeneration": 2}]},
    )
    await reconcile(again)
    assert again.events == []


@pytest.mark.spec("W-11")
@pytest.mark.parametrize("error", [Invalid, Forbidden, BadRequest, AlreadyExists, MethodNotAllowed, InternalError])
async def test_a_refusal_is_an_error_and_ends_the_building(error: Any) -> None:
    stage = Stage(disk(), vm(), vmi(), status={"phase": "Running"})
    stage.errors["patch", "PersistentVolumeClaim"] = refused(error)
    assert await reconcile(stage) == LATER
    assert (stage.ctx.obj.status.phase, stage.said("VirtualMachineReady")) == ("Error", ("False", "Refused"))
    assert stage.ctx.obj.status.message.startswith("the API server refuses: no")
    assert stage.applied("VirtualMachine") == []
    assert stage.events == [("Warning", "Refused")]


@pytest.mark.spec("W-11", "W-16")
async def test_what_is_not_a_refusal_is_the_runtimes_business() -> None:
    terminating = StatusDetails(causes=[StatusCause(reason="NamespaceTerminating")])
    for error in (refused(Conflict), Forbidden(Status(message="no", details=terminating))):
        stage = Stage(disk(), status={"phase": "Running"})
        stage.errors["patch", "PersistentVolumeClaim"] = error
        with pytest.raises(type(error)):
            await reconcile(stage)
    strange = made(Secret, "web-cloudinit", owners=[controlled_by("X", "x")])
    stage = Stage(disk(), claim(), strange, status={"phase": "Running"})
    assert await reconcile(stage) == LATER
    assert (stage.said("Ready"), stage.applied("VirtualMachine")) == (("False", "NotOurs"), [])


@pytest.mark.spec("W-10")
async def test_one_that_is_being_deleted_is_not_built() -> None:
    stage = Stage(None, meta={"deletionTimestamp": OLD})
    assert await reconcile(stage) is None
    assert [sent.kind for sent in stage.sent] == ["Wukong"]


@pytest.mark.spec("W-11")
async def test_a_reconcile_ends_at_its_limit() -> None:
    stage = Stage(None, status={"phase": "Running"})

    async def hang(state: ReconcileState) -> None:
        await asyncio.sleep(3600)

    reconciler = WukongReconciler(Options(limit=5.0, wait=7.0))
    reconciler._run_steps = hang  # type: ignore[method-assign, assignment]
    assert await reconciler.reconcile(stage.ctx) == Result(requeue_after=7.0)
