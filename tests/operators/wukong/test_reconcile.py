"""A Wukong's life on a simulated cluster: from nothing to running, power, growth, and ten minutes of silence."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.client import Call, Invalid, JsonPatch, MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret, Service
from konverge.operators.wukong.kinds import DataVolume, NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import FINALIZER, Wukong
from konverge.operators.wukong.steps.power import MACHINES
from konverge.runtime import controller_of, find_condition
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import MODES, MODES_IN_TURN, NAME, SPACE, SPEC, World, world

pytestmark = pytest.mark.virtual

PLAIN = {"name": "system", "size": "10Gi", "storageClassName": "fast"}


def of_operator(w: World) -> list[str]:
    """Verb, resource and subresource of each write."""
    text = ((c.verb, "" if c.resource is None else c.resource.plural, c.subresource) for c in w.writes())
    return [" ".join(filter(None, word)) for word in text]


@pytest.mark.spec("W-02", "W-03", "W-05", "W-07", "W-08", "W-09", "W-15")
@pytest.mark.parametrize("mode", MODES)
async def test_a_new_machine_comes_up_and_is_left_alone(mode: str) -> None:
    async with world(cdi=mode) as w:
        w.writes()
        seen: list[str] = []

        async def watch() -> None:
            async for event in w.client.watch(Wukong, SPACE):
                if event.object.status.phase not in ("", *seen[-1:]):
                    seen.append(event.object.status.phase)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0.1)
        result = await w.running()
        watching.cancel()
        assert seen == ["Pending", "Creating", "Running"]
        writes = of_operator(w)
        assert writes[:3] == ["patch wukongs", "patch wukongs status", "patch datavolumes"]
        assert writes.index("patch virtualmachines") > writes.index("patch datavolumes")
        assert writes.count("patch virtualmachines") == writes.count("patch datavolumes") == 1
        assert result.metadata.finalizers == [FINALIZER]
        status = result.status
        assert (status.vm_name, status.power_state, status.observed_generation) == ("web-vm", "Running", 1)
        assert status.node_name.startswith("node-")
        assert status.primary_ip == status.networks[0].ip_address != ""
        vmi = await w.vmi()
        assert vmi is not None
        assert status.networks[0].mac_address == vmi.status.interfaces[0].mac
        assert [(volume.bound, volume.progress, volume.phase) for volume in status.volumes] == [
            (True, "100.0%", "Succeeded")
        ]
        for type in ("Ready", "SpecValid", "NetworksConfigured", "VolumesBound", "VirtualMachineReady"):
            condition = find_condition(status.conditions, type)
            assert condition is not None
            assert (condition.status, condition.observed_generation) == ("True", 1)
        for kind, name in ((VirtualMachine, "web-vm"), (DataVolume, "web-system"), (Secret, "web-cloudinit")):
            owner = controller_of(await w.client.get(kind, name, SPACE))
            assert owner is not None
            assert owner.uid == result.metadata.uid
        await asyncio.sleep(60)
        w.writes()
        since = find_condition((await w.wukong()).status.conditions, "Ready")
        await asyncio.sleep(600)
        assert of_operator(w) == [], "ten minutes without a write"
        assert find_condition((await w.wukong()).status.conditions, "Ready") == since
        assert w.manager.engines["wukong"].numbers.errors == 0


@pytest.mark.spec("W-05", "W-07")
@pytest.mark.parametrize("mode", MODES)
async def test_waiting_for_the_first_consumer_is_no_deadlock(mode: str) -> None:
    async with world(cdi=mode, timings=QUICK) as w:
        lazy = {"storageClassName": "lazy"}
        await w.create("filled", disks=[SPEC["disks"][0] | lazy])
        await w.create("plain", disks=[PLAIN | lazy])
        await w.create("off", disks=[SPEC["disks"][0] | lazy], powerState="Stopped")
        for name in ("filled", "plain"):
            result = await w.phase("Running", name)
            assert result.status.volumes[0].bound
        result = await w.phase("Stopped", "off")
        assert await w.condition("VolumesBound", "off") == ("False", "WaitingForFirstConsumer")
        assert await w.condition("SpecValid", "off") == ("True", "Valid")
        await w.change("off", powerState="Running")
        await w.phase("Running", "off")


@pytest.mark.spec("W-13", "W-14")
async def test_power_is_kept_where_it_is_declared_and_left_alone_where_not() -> None:
    async def virtctl(w: World, name: str, strategy: str) -> None:
        """What `virtctl stop` and `start` do to a machine that runs always."""
        await w.client.patch(VirtualMachine, f"{name}-vm", MergePatch({"spec": {"runStrategy": strategy}}), SPACE)

    async with world(timings=QUICK) as w:
        await w.create("declared", disks=[PLAIN], powerState="Running")
        await w.create("free", disks=[PLAIN])
        await w.create("off", disks=[PLAIN], running=False)
        await w.phase("Running", "declared")
        await w.phase("Running", "free")
        result = await w.phase("Stopped", "off")
        assert result.status.power_state == "Stopped"
        await asyncio.sleep(30)
        w.writes()
        await virtctl(w, "declared", "Halted")
        await virtctl(w, "free", "Halted")
        await w.phase("Stopped", "free")
        await asyncio.sleep(60)
        await w.phase("Running", "declared")
        machines = [item for item in of_operator(w) if item == "patch virtualmachines"]
        assert len(machines) <= 2, "each machine is written once at most: one undone, one taken as it is"
        assert "PowerReverted" in await w.events()
        await asyncio.sleep(300)
        assert of_operator(w) == []
        await virtctl(w, "free", "Always")
        await w.phase("Running", "free")
        reported = (await w.events()).count("PowerReverted")
        await w.change("declared", powerState="Stopped")
        await w.phase("Stopped", "declared")
        assert (await w.events()).count("PowerReverted") == reported, "a changed spec overrules no user"
        assert await w.vmi("declared") is None
        assert (await w.wukong("declared")).status.primary_ip == ""


@pytest.mark.spec("W-13")
async def test_a_restart_happens_once_for_each_new_token() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN], restartAt="first")
        before = await w.vmi()
        await asyncio.sleep(60)
        now = await w.vmi()
        assert before is not None
        assert now is not None
        assert now.metadata.uid == before.metadata.uid, "the token it began with is no reason to restart"
        await w.change(restartAt="second")

        async def restarted() -> bool:
            vmi = await w.vmi()
            return vmi is not None and vmi.metadata.uid != before.metadata.uid

        await w.until(restarted, "a restart")
        await w.phase("Running")
        again = await w.vmi()
        await asyncio.sleep(120)
        last = await w.vmi()
        assert again is not None
        assert last is not None
        assert again.metadata.uid == last.metadata.uid
        assert (await w.wukong()).status.last_restart == "second"


@pytest.mark.spec("W-13")
async def test_changes_wait_for_a_restart_unless_they_may_take_one() -> None:
    async with world(timings=QUICK) as w:
        await w.create("manual", disks=[PLAIN])
        await w.create("automatic", disks=[PLAIN], updatePolicy="Automatic")
        await w.phase("Running", "manual")
        await w.phase("Running", "automatic")
        first = {name: await w.vmi(name) for name in ("manual", "automatic")}
        for name in first:
            await w.change(name, cpu=4)
        await w.until_condition("RestartRequired", "True", "PendingChanges", "manual")
        assert (await w.wukong("manual")).status.pending_changes

        async def restarted() -> bool:
            vmi, old = await w.vmi("automatic"), first["automatic"]
            return vmi is not None and old is not None and vmi.metadata.uid != old.metadata.uid

        await w.until(restarted, "an automatic restart")
        await w.until_condition("RestartRequired", "False", "UpToDate", "automatic")
        vmi, old = await w.vmi("manual"), first["manual"]
        assert vmi is not None
        assert old is not None
        assert vmi.metadata.uid == old.metadata.uid


@pytest.mark.spec("W-06")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_disks_grow_where_their_class_allows_it_and_never_shrink(mode: str) -> None:
    async with world(cdi=mode, timings=QUICK) as w:
        plain, rigid = PLAIN | {"name": "plain"}, PLAIN | {"name": "rigid", "storageClassName": "rigid"}
        await w.running(disks=[SPEC["disks"][0], plain])
        await w.running("stiff", disks=[rigid])
        await asyncio.sleep(30)
        claim = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        before = claim.spec.resources.requests["storage"] if claim.spec.resources else None
        await w.change(disks=[SPEC["disks"][0] | {"size": "20Gi"}, plain | {"size": "15Gi"}])

        async def grown() -> bool:
            status = (await w.wukong()).status
            return (
                [volume.capacity for volume in status.volumes]
                == [volume.requested for volume in status.volumes]
                != [str(before), "10Gi"]
            )

        await w.until(grown, "larger disks")
        claim = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert claim.spec.resources is not None
        assert before is not None
        assert int(claim.spec.resources.requests["storage"]) == 2 * int(before), "room for the file system grows along"
        assert (await w.wukong()).status.phase == "Running"
        w.writes()
        await asyncio.sleep(120)
        assert [item for item in of_operator(w) if "claims" in item] == []
        await w.change("stiff", disks=[rigid | {"size": "11Gi"}])
        await w.until_condition("SpecValid", "False", "DiskCannotGrow", "stiff")
        assert await w.condition("Ready", "stiff") == ("True", "VMRunning")
        with pytest.raises(Invalid, match="a disk cannot shrink"):
            await w.change("stiff", disks=[rigid | {"size": "9Gi"}])
        await w.change("stiff", disks=[rigid | {"size": "11Gi"}])


@pytest.mark.spec("W-06", "W-14")
async def test_what_got_past_the_definition_is_refused_by_the_operator() -> None:
    """An older cluster does not know the rules about old values: here they are taken out of the definition."""
    async with world(timings=QUICK) as w:
        await w.running()
        definition = next(
            definition for definition in OPERATOR.definitions() if definition["metadata"]["name"].startswith("wukongs.")
        )
        open_spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        root = "/spec/versions/0/schema/openAPIV3Schema"
        loose = JsonPatch([{"op": "replace", "path": f"{root}/properties/spec", "value": open_spec},
                           {"op": "remove", "path": f"{root}/x-kubernetes-validations"}])  # fmt: skip
        await w.client.patch("customresourcedefinitions", definition["metadata"]["name"], loose)
        await asyncio.sleep(2)
        machine = await w.vm()
        assert machine is not None
        disk: dict[str, Any] = SPEC["disks"][0]
        for change, reason in (
            ({"size": "9Gi"}, "DiskCannotShrink"),
            ({"storageClassName": "rigid"}, "DiskClassChanged"),
            ({"image": "https://example.com/other.img"}, "DiskSourceChanged"),
        ):
            await w.change(disks=[disk | change])
            await w.until_condition("SpecValid", "False", reason)
            assert (await w.wukong()).status.phase == "Error"
            assert await w.condition("Ready") == ("True", "VMRunning")
        await w.change(disks="nonsense")
        await w.until_condition("SpecValid", "False", "Malformed")
        await w.change(disks=[disk], cpu=None)
        await w.until_condition("SpecValid", "False", "Invalid")
        after = await w.vm()
        assert after is not None
        assert after.metadata.generation == machine.metadata.generation, "the machine is left alone"
        await w.change(disks=[disk], cpu=2)
        await w.phase("Running")


@pytest.mark.spec("W-04", "W-07", "W-13")
async def test_networks_secrets_and_services() -> None:
    async with world(timings=QUICK) as w:
        lan = {"name": "lan", "type": "bridge", "bridgeName": "br-lan", "vlanId": 100,
               "ipConfig": {"mode": "static", "address": "192.168.1.10/24"}}  # fmt: skip
        given = {"name": "given", "nadName": "theirs"}
        user = {"name": "me", "passwordSecret": {"name": "login"}}
        await w.create(disks=[PLAIN], networks=[{"name": "default"}, lan, given], cloudInitUser=user,
                       expose=[{"name": "ssh", "port": 22}])  # fmt: skip
        await w.until_condition("NetworksConfigured", "False", "NetworkNotFound")
        assert await w.vm() is None
        config = json.dumps({"cniVersion": "0.3.1", "name": "theirs", "type": "bridge", "bridge": "br9"})
        made = NetworkAttachmentDefinition(metadata=ObjectMeta(name="theirs", namespace=SPACE))
        made.spec.config = config
        await w.client.create(made)
        await w.until_condition("VirtualMachineReady", "False", "SecretNotFound")
        assert "login" in (await w.wukong()).status.message
        await w.client.create(Secret(metadata=ObjectMeta(name="login", namespace=SPACE), string_data={"password": "x"}))
        result = await w.phase("Running")
        assert [(network.name, network.nad_name) for network in result.status.networks] == [
            ("default", ""), ("lan", "web-lan-nad"), ("given", "theirs"),
        ]  # fmt: skip
        assert await w.find(Service, "web-ssh") is not None
        await w.change(expose=[], networks=[{"name": "default"}], restartAt="now")

        async def swept() -> bool:
            left = (await w.find(Service, "web-ssh"), await w.find(NetworkAttachmentDefinition, "web-lan-nad"))
            return left == (None, None)

        await w.until(swept, "the end of what is no longer desired")
        assert await w.find(NetworkAttachmentDefinition, "theirs") is not None, "it is not ours"


@pytest.mark.spec("W-13")
async def test_a_pause_of_the_operator_leaves_everything_as_it_is() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN])
        await w.change(paused=True, cpu=4)
        await w.until_condition("Paused", "True", "Spec")
        w.writes()
        await w.client.delete(VirtualMachine, "web-vm", SPACE)
        await w.gone(VirtualMachine, "web-vm")
        await asyncio.sleep(60)
        assert not [item for item in of_operator(w) if "wukongs" not in item]
        await w.change(paused=False)
        await w.phase("Running")
        machine = await w.vm()
        assert machine is not None
        assert await w.condition("Paused") == ("", "")
        assert (await w.wukong()).status.vm_name == f"{NAME}-vm"


@pytest.mark.spec("W-13")
async def test_a_guest_is_paused_and_goes_on() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN], powerState="Running")
        before = await w.vmi()
        await w.change(powerState="Paused")
        await w.until_condition("Ready", "False", "VMPaused")
        assert (await w.wukong()).status.power_state == "Paused"
        await asyncio.sleep(30)
        w.writes()
        await asyncio.sleep(300)
        assert of_operator(w) == []
        await w.change(powerState="Running")
        await w.until_condition("Ready", "True", "VMRunning")
        after = await w.vmi()
        assert before is not None
        assert after is not None
        assert after.metadata.uid == before.metadata.uid
        assert {"Paused", "Unpaused"} <= set(await w.events())


@pytest.mark.spec("W-07", "W-13")
async def test_what_others_have_made_or_plugged_in_is_left_alone() -> None:
    async with world(timings=QUICK) as w:
        template: dict[str, Any] = {"spec": {"domain": {"devices": {}}}}
        theirs = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                  "metadata": {"name": "taken-vm", "namespace": SPACE},
                  "spec": {"runStrategy": "Halted", "template": template}}  # fmt: skip
        await w.client.create(theirs)
        await w.create("taken", disks=[PLAIN])
        result = await w.phase("Error", "taken")
        assert result.status.message.startswith("VirtualMachine taken-vm exists and has no controller")
        await w.delete("taken")
        await w.gone(Wukong, "taken")
        machine = await w.vm("taken")
        assert machine is not None
        assert (machine.metadata.labels, machine.metadata.owner_references) == ({}, [])

        data = PLAIN | {"name": "data"}
        await w.running(disks=[PLAIN, data], startStrategy={"runStrategy": "Always"})
        hot = [{"op": "add", "path": "/spec/template/spec/volumes/-",
                "value": {"name": "hot", "dataVolume": {"name": "hot", "hotpluggable": True}}},
               {"op": "add", "path": "/spec/template/spec/domain/devices/disks/-",
                "value": {"name": "hot", "disk": {"bus": "scsi"}}}]  # fmt: skip
        await w.client.patch("virtualmachines.kubevirt.io", "web-vm", JsonPatch(hot), SPACE)
        await w.change(disks=[PLAIN])

        async def names() -> list[str]:
            now = await w.client.get("virtualmachines.kubevirt.io", "web-vm", SPACE)
            return [volume["name"] for volume in now["spec"]["template"]["spec"]["volumes"]]

        async def unplugged() -> bool:
            return "data" not in await names()

        await w.until(unplugged, "a machine without the disk")
        assert await names() == ["system", "cloudinitdisk", "hot"]
        assert await w.find(PersistentVolumeClaim, "web-data") is not None, "its data stay"


@pytest.mark.spec("W-13")
async def test_a_machine_that_people_start_is_restarted_by_asking_for_it() -> None:
    async with world(timings=QUICK) as w:
        await w.create(disks=[PLAIN], startStrategy={"runStrategy": "Manual"})
        await w.phase("Stopped")
        call = Call("update", MACHINES, SPACE, "web-vm", subresource="start", body=b"{}",
                    content_type="application/json")  # fmt: skip
        await w.client.caller.call(call)
        await w.phase("Running")
        before = await w.vmi()
        await w.change(restartAt="now")

        async def restarted() -> bool:
            now = await w.vmi()
            return now is not None and before is not None and now.metadata.uid != before.metadata.uid

        await w.until(restarted, "a restart")
        await w.phase("Running")
