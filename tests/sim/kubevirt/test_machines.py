"""What becomes of changes to a machine: live or after a restart; run strategies; instance types; volume templates."""

from __future__ import annotations

import pytest

from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, claim, condition, data_volume, machine, nad, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
SOCKETS = {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 4}}}}}}


async def test_a_change_waits_for_a_restart() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", SOCKETS)
        await play.after(2)
        assert condition(await play.status(VM), "RestartRequired")[0] == "True"
        assert (await play.get(VMI))["spec"]["domain"]["cpu"]["sockets"] == 2
        await play.client.delete(VMI, "web-vm", SPACE)
        await play.after(60)
        assert condition(await play.status(VM), "RestartRequired") == ("", "")
        assert (await play.get(VMI))["spec"]["domain"]["cpu"]["sockets"] == 4


async def test_a_change_taken_back_needs_no_restart() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", SOCKETS)
        await play.after(2)
        back = {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 2}}}}}}
        await play.patch(VM, "web-vm", back)
        await play.after(2)
        assert condition(await play.status(VM), "RestartRequired") == ("", "")


async def test_cpu_memory_networks_and_disks_reach_a_running_guest() -> None:
    async with playing(rollout="LiveUpdate") as play:
        await play.client.create(nad("lan"))
        await play.client.create(claim("more"))
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", SOCKETS)
        await play.patch(VM, "web-vm", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "4Gi"}}}}}})
        await play.after(2)
        status = await play.status(VMI)
        assert status["currentCPUTopology"]["sockets"] == 4
        assert status["memory"] == {"guestAtBoot": "2Gi", "guestCurrent": "4Gi", "guestRequested": "4Gi"}
        desired = machine("web-vm", networks={"lan": "lan"})["spec"]["template"]["spec"]
        desired["domain"]["devices"]["disks"] = [{"name": "more", "disk": {"bus": "scsi"}}]
        desired["volumes"] = [{"name": "more", "persistentVolumeClaim": {"claimName": "more", "hotpluggable": True}}]
        devices = {key: desired["domain"]["devices"][key] for key in ("disks", "interfaces")}
        changed = {"domain": {"devices": devices}, "networks": desired["networks"], "volumes": desired["volumes"]}
        await play.patch(VM, "web-vm", {"spec": {"template": {"spec": changed}}})
        await play.after(2)
        status = await play.status(VMI)
        assert [interface["name"] for interface in status["interfaces"]] == ["default", "lan"]
        assert condition(await play.status(VM), "RestartRequired") == ("", "")
        assert "more" in [item["name"] for item in status["volumeStatus"]]


async def test_what_cannot_be_changed_live_waits_and_holds_up_the_rest() -> None:
    async with playing(rollout="LiveUpdate", parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", {"spec": {"template": {"spec": {"hostname": "other"}}}})
        await play.after(2)
        await play.patch(VM, "web-vm", SOCKETS)
        await play.after(2)
        assert condition(await play.status(VM), "RestartRequired")[0] == "True"
        assert (await play.get(VMI))["spec"]["domain"]["cpu"]["sockets"] == 2


async def test_manual_waits_to_be_asked() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", runStrategy="Manual"))
        await play.after(10)
        assert await play.shown() == "Stopped"
        await play.patch(VM, "web-vm", {"status": {"stateChangeRequests": [{"action": "Start"}]}}, subresource="status")
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", {"status": {"stateChangeRequests": [{"action": "Stop"}]}}, subresource="status")
        await play.after(30)
        assert (await play.shown(), await play.find(VMI)) == ("Stopped", None)
        assert "stateChangeRequests" not in await play.status(VM)


async def test_the_old_boolean_still_works() -> None:
    async with playing(parts=["kubevirt"]) as play:
        made = machine("web-vm", running=True)
        del made["spec"]["runStrategy"]
        await play.client.create(made)
        await play.until(VMI, "web-vm", "Running")
        await play.patch(VM, "web-vm", {"spec": {"running": False}})
        await play.after(30)
        assert await play.shown() == "Stopped"


async def test_an_instance_type_gives_the_size() -> None:
    async with playing(parts=["kubevirt"]) as play:
        kind = {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype"}
        size = {"cpu": {"guest": 8}, "memory": {"guest": "16Gi"}}
        await play.client.create({**kind, "metadata": {"name": "large"}, "spec": size})
        made = machine("web-vm", instancetype={"name": "large"})
        for key in ("cpu", "memory"):
            del made["spec"]["template"]["spec"]["domain"][key]
        await play.client.create(made)
        await play.until(VMI, "web-vm", "Running")
        domain = (await play.get(VMI))["spec"]["domain"]
        assert (domain["cpu"]["sockets"], domain["memory"]["guest"]) == (8, "16Gi")
        assert condition(await play.status(VM), "RestartRequired") == ("", "")


async def test_volume_templates_are_made_and_go_with_the_machine() -> None:
    async with playing() as play:
        template = data_volume("root")
        desired = {"metadata": {"name": "root"}, "spec": template["spec"]}
        made = machine("web-vm", "root", dataVolumeTemplates=[desired])
        made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "root"}}]
        await play.client.create(made)
        await play.after(5)
        assert (await play.shown(), await play.find(VMI)) == ("Provisioning", None)
        assert "runStrategy" not in await play.status(VM)
        await play.until(VMI, "web-vm", "Running")
        await play.client.delete(VM, "web-vm", SPACE)
        await play.after(40)
        assert [await play.find(VM), await play.find(DV, "root")] == [None, None]


async def test_a_guest_that_shuts_down_stays_down_where_only_failures_count() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", runStrategy="RerunOnFailure"))
        await play.until(VMI, "web-vm", "Running")
        await play.faults(vm="shutdown")
        await play.after(60)
        assert (await play.shown(), await play.find(VMI)) == ("Stopped", None)


async def test_a_machine_may_have_a_long_name() -> None:
    name = "x" * 62 + "." + "y" * 20
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine(name))
        await play.until(VMI, name, "Running")


async def test_a_mac_stays_only_where_it_is_given() -> None:
    async with playing(parts=["kubevirt"]) as play:
        fixed = machine("fixed")
        fixed["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["macAddress"] = "02:00:00:00:00:01"
        await play.client.create(fixed)
        await play.client.create(machine("web-vm"))

        async def macs() -> list[str]:
            await play.after(60)
            return [(await play.status(VMI, name))["interfaces"][0]["mac"] for name in ("fixed", "web-vm")]

        first = await macs()
        for name in ("fixed", "web-vm"):
            await play.client.delete(VMI, name, SPACE)
        second = await macs()
        assert (first[0] == second[0] == "02:00:00:00:00:01", first[1] != second[1]) == (True, True)


async def test_nothing_is_written_once_everything_runs() -> None:
    async with playing() as play:
        await play.client.create(data_volume("root"))
        await play.client.create(machine("web-vm", "root"))
        await play.until(VMI, "web-vm", "Running")
        await play.after(60)
        tables = play.cluster.server.store.tables
        quiet = ("coordination.k8s.io/leases", "/events", "events.k8s.io/events")
        before = {name: table.revision for name, table in tables.items() if name not in quiet}
        await play.after(600)
        assert {name: table.revision for name, table in tables.items() if name not in quiet} == before
