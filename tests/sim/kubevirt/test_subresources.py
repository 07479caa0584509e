"""What `virtctl` asks for: power, migration, pause; and that the group is served as others are."""

from __future__ import annotations

import pytest

from konverge.client import BadRequest, Client, Conflict, Forbidden, Invalid, NotFound, Static
from konverge.client.config import Impersonation
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.subresources import GROUP
from tests.sim.kubevirt.conftest import SPACE, VM, VMI, VMIM, Obj, Play, claim, condition, machine, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
MACHINES = Resource(GROUP, "v1", "VirtualMachine", "virtualmachines")
INSTANCES = Resource(GROUP, "v1", "VirtualMachineInstance", "virtualmachineinstances")


async def ask(play: Play, action: str, body: Obj | None = None, kind: Resource = MACHINES) -> Obj:
    return await play.client.update_sub(kind, "web-vm", action, body or {}, SPACE)


async def test_stop_and_start_write_the_run_strategy() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        with pytest.raises(Conflict, match="already running"):
            await ask(play, "start")
        assert (await ask(play, "stop"))["status"] == "Success"
        await play.after(30)
        assert ((await play.get(VM))["spec"]["runStrategy"], await play.shown()) == ("Halted", "Stopped")
        with pytest.raises(Conflict, match="not running"):
            await ask(play, "stop")
        with pytest.raises(Conflict, match="does not support manual restart"):
            await ask(play, "restart")
        await ask(play, "start")
        await play.until(VMI, "web-vm", "Running")
        assert (await play.get(VM))["spec"]["runStrategy"] == "Always"


async def test_a_machine_that_runs_once_is_stopped_for_good() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", runStrategy="Once"))
        await play.until(VMI, "web-vm", "Running")
        for word in ("restart", "start"):
            with pytest.raises(Conflict):
                await ask(play, word)
        await ask(play, "stop")
        await play.after(60)
        assert ((await play.get(VM))["spec"]["runStrategy"], await play.shown()) == ("Halted", "Stopped")


@pytest.mark.parametrize("how", ["Manual", "RerunOnFailure"])
async def test_other_strategies_stay_as_they_are(how: str) -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", runStrategy=how))
        if how == "Manual":
            await play.after(2)
            await ask(play, "start")
        await play.until(VMI, "web-vm", "Running")
        await ask(play, "stop")
        await play.after(60)
        assert ((await play.get(VM))["spec"]["runStrategy"], await play.shown()) == (how, "Stopped")
        await ask(play, "start")
        await play.until(VMI, "web-vm", "Running")


@pytest.mark.parametrize(("body", "within"), [({}, 40.0), ({"gracePeriodSeconds": 0}, 14.0)])
async def test_restart_gives_another_instance(body: Obj, within: float) -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        first = (await play.get(VMI))["metadata"]["uid"]
        await ask(play, "restart", body)
        await play.after(within)
        vmi = await play.get(VMI)
        assert (vmi["metadata"]["uid"] != first, vmi["status"]["phase"]) == (True, "Running")
        assert "stateChangeRequests" not in await play.status(VM)


async def test_pause_and_unpause() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await ask(play, "pause", kind=INSTANCES)
        await play.after(40)
        assert (await play.shown(), condition(await play.status(VM), "Paused")[0]) == ("Paused", "True")
        with pytest.raises(Conflict, match="already paused"):
            await ask(play, "pause", kind=INSTANCES)
        await ask(play, "unpause", kind=INSTANCES)
        await play.after(2)
        assert (await play.shown(), condition(await play.status(VM), "Paused")[0]) == ("Running", "")


async def test_migrate_makes_a_migration() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await ask(play, "migrate")
        await play.after(60)
        result = await play.client.list(VMIM, SPACE)
        assert [item["status"]["phase"] for item in result] == ["Succeeded"]
        await play.faults(vm="rwo")
        await play.client.create(claim("root"))
        await play.client.create(machine("fixed", "root"))
        await play.until(VMI, "fixed", "Running")
        await play.after(1)
        with pytest.raises(Invalid, match="DisksNotLiveMigratable"):
            await play.client.update_sub(MACHINES, "fixed", "migrate", {}, SPACE)


async def test_the_group_is_served_as_others_are_and_guarded_by_rbac() -> None:
    async with playing(parts=["kubevirt"]) as play:
        with pytest.raises(NotFound, match="web-vm"):
            await ask(play, "start")
        await play.client.create(machine("web-vm", runStrategy="Halted"))
        with pytest.raises(NotFound):
            await ask(play, "explode")
        with pytest.raises(BadRequest, match="not a JSON object"):
            await play.client.update_sub(MACHINES, "web-vm", "start", ["no"], SPACE)
        client: Client = play.client
        served = [item.resource.group for item in await client.mapper.all()]
        assert "kubevirt.io" in served
        admin = Static.bearer(play.cluster.server.token)
        stranger = Client(play.cluster.server.transport, credentials=admin, impersonate=Impersonation(user="joe"))
        with pytest.raises(Forbidden, match="virtualmachines/start"):
            await stranger.update_sub(MACHINES, "web-vm", "start", {}, SPACE)
