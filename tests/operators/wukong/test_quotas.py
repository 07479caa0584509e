"""Quotas of a namespace: who gets what, who waits, and what goes on under a lower limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Conflict, Invalid, MergePatch
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret
from konverge.operators.wukong.kinds import DataVolume, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.quotas import concerned
from konverge.operators.wukong.resource import AnyWukong, WukongQuota
from konverge.runtime import find_condition
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.test_templates import cores, memory
from tests.operators.wukong.world import SPACE, SPEC, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-29")]

DISK = {"name": "system", "size": "10Gi", "storageClassName": "fast"}


async def limit(w: World, **limits: Any) -> None:
    head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongQuota"}
    await w.client.create({**head, "metadata": {"name": "default", "namespace": SPACE}, "spec": limits})


async def relimit(w: World, **limits: Any) -> None:
    await w.client.patch(WukongQuota, "default", MergePatch({"spec": limits}), SPACE)


async def quota(w: World) -> WukongQuota:
    return await w.client.get(WukongQuota, "default", SPACE)


async def said(w: World) -> tuple[str, str]:
    condition = find_condition((await quota(w)).status.conditions, "Ready")
    return ("", "") if condition is None else (condition.reason, condition.message)


async def granted(w: World) -> list[str]:
    return [grant.name for grant in (await quota(w)).status.granted]


async def test_a_machine_over_the_quota_is_not_made_and_says_which_limit() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, machines=5, cpu=3, memory="5Gi", storage="15Gi")
        await w.running("first")
        assert await w.condition("WithinQuota", "first") == ("True", "Granted")
        await w.create("second", cpu=2, memory="4Gi", disks=[DISK])
        await w.until_condition("WithinQuota", "False", "QuotaExceeded", "second")
        expected = (
            "WukongQuota default: cpu: 2 of 3 in use, 2 more asked for, 1 too much; "
            "memory: 2Gi of 5Gi in use, 4Gi more asked for, 1Gi too much; "
            "storage: 10Gi of 15Gi in use, 10Gi more asked for, 5Gi too much"
        )
        assert await w.message("WithinQuota", "second") == expected
        shown = await w.wukong("second")
        assert (shown.status.phase, shown.status.message) == ("Pending", expected)
        assert await w.condition("Ready", "second") == ("False", "QuotaExceeded")
        for kind, name in ((VirtualMachine, "second-vm"), (PersistentVolumeClaim, "second-system")):
            assert await w.find(kind, name) is None
        assert await w.find(Secret, "second-cloudinit") is None
        assert (await w.events()).count("QuotaExceeded") == 1
        found = await quota(w)
        used = found.status.used
        assert (used.machines, used.cpu, used.memory, used.storage) == (1, 2, "2Gi", "10Gi")
        assert [(entry.name, f"WukongQuota default: {entry.message}") for entry in found.status.waiting] == [
            ("second", expected)
        ]
        assert await said(w) == ("Enforced", "1 wait")
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []

        await w.delete("first")
        await w.gone(AnyWukong, "first")
        await w.phase("Running", "second")
        assert await granted(w) == ["second"]
        assert await said(w) == ("Enforced", "all that was asked for is granted")


@pytest.mark.parametrize("counted", [False, True])
async def test_a_quota_in_which_nothing_is_counted_is_written_once(counted: bool) -> None:
    """The definition has defaults for what nobody uses: they come back from the server, and are no difference."""
    async with world(timings=QUICK) as w:
        await limit(w, machines=5)
        if counted:
            await w.create(cpu=None, memory=None, instancetype={"name": "small"})
            await w.until_condition("WithinQuota", "True", "Granted")
        await asyncio.sleep(60)
        w.writes()
        for note in ("a", "b"):  # each is a reason to reconcile
            body = {"metadata": {"annotations": {"note": note}}}
            await w.client.patch(WukongQuota, "default", MergePatch(body), SPACE)
            await asyncio.sleep(30)
        assert [call for call in w.writes() if call.resource == WukongQuota.resource] == []
        used = (await quota(w)).status.used
        assert (used.machines, used.memory) == (int(counted), "0")


async def test_of_many_at_once_as_many_get_through_as_fit() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, machines=3)
        await asyncio.gather(*(w.create(f"m{number}") for number in range(8)))
        await asyncio.sleep(120)
        running = [wukong for wukong in await w.client.list(AnyWukong, SPACE) if wukong.status.phase == "Running"]
        assert len(running) == 3
        assert len((await w.client.list(VirtualMachine, SPACE)).items) == 3
        assert len((await w.client.list(DataVolume, SPACE)).items) == 3
        assert sorted(await granted(w)) == sorted(wukong.metadata.name for wukong in running)
        await relimit(w, machines=4)
        await asyncio.sleep(60)
        assert len((await w.client.list(VirtualMachine, SPACE)).items) == 4


async def test_two_operators_at_once_let_no_more_through() -> None:
    async with world(timings=QUICK) as w, operating(w.client):
        await limit(w, cpu=5)
        await asyncio.gather(*(w.create(f"m{number}", cpu=1 + number % 3) for number in range(8)))
        for _ in range(40):
            await asyncio.sleep(1)
            machines = await w.client.list(VirtualMachine, SPACE)
            sizes = [await cores(w, machine.metadata.name.removesuffix("-vm")) for machine in machines]
            assert sum(sizes) <= 5
        running = [wukong for wukong in await w.client.list(AnyWukong, SPACE) if wukong.status.phase == "Running"]
        assert sum(wukong.spec["cpu"] for wukong in running) == 5
        assert (await quota(w)).status.used.cpu == 5


async def test_what_was_there_before_a_quota_goes_on() -> None:
    async with world(timings=QUICK) as w:
        await w.running("first")
        await w.running("second")
        before = [await w.vmi("first"), await w.vmi("second")]
        await limit(w, machines=1, cpu=1)
        await w.until_condition("WithinQuota", "True", "Granted", "second")
        assert await said(w) == (
            "BelowUse",
            "machines: 2 of 1 in use; cpu: 4 of 1 in use: nothing is stopped, and nothing is granted beyond that",
        )
        await w.change("first", restartAt="now")
        await asyncio.sleep(60)
        assert await w.condition("Ready", "first") == ("True", "VMRunning")
        after = await w.vmi("second")
        assert after is not None
        assert before[1] is not None
        assert after.metadata.uid == before[1].metadata.uid
        await w.change("first", powerState="Stopped")
        await w.phase("Stopped", "first")
        await w.change("first", powerState="Running")
        await w.phase("Running", "first")
        await w.client.delete(WukongQuota, "default", SPACE)
        await asyncio.sleep(30)
        assert await w.condition("WithinQuota", "first") == ("", "")


async def test_more_than_was_granted_waits_and_the_machine_goes_on_without() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, cpu=4, memory="4Gi", storage="12Gi")
        await w.running()
        await w.change(
            cpu=6,
            memory="3Gi",
            disks=[SPEC["disks"][0] | {"size": "11Gi"}, DISK | {"name": "data", "size": "5Gi"}],
            expose=[{"name": "ssh", "port": 22}],
        )
        await w.until_condition("WithinQuota", "False", "QuotaExceeded")
        assert await w.message("WithinQuota") == (
            "WukongQuota default: cpu: 2 of 4 in use, 4 more asked for, 2 too much; "
            "storage: 10Gi of 12Gi in use, 6Gi more asked for, 4Gi too much"
        )
        await asyncio.sleep(30)
        assert (await cores(w), await memory(w)) == (2, "2Gi"), "all of it, or none of it"
        assert await w.find(PersistentVolumeClaim, "web-data") is None
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.change(powerState="Stopped")
        await w.phase("Stopped")
        await relimit(w, cpu=8, storage="1Ti")
        await w.until_condition("WithinQuota", "True", "Granted")
        await asyncio.sleep(60)
        assert (await cores(w), await memory(w)) == (6, "3Gi")
        assert [entry.size for entry in (await w.wukong()).status.volumes] == ["11Gi", "5Gi"]
        used = (await quota(w)).status.used
        assert (used.cpu, used.memory, used.storage) == (6, "3Gi", "16Gi")


async def test_what_is_given_back_is_free_when_the_machine_has_let_go_of_it() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, cpu=4, storage="40Gi")
        await w.running(cpu=4, disks=[*SPEC["disks"], DISK | {"name": "data"}])
        await w.create("second", cpu=2)
        await w.until_condition("WithinQuota", "False", "QuotaExceeded", "second")
        await w.change(cpu=2, disks=SPEC["disks"])
        await asyncio.sleep(60)
        assert (await w.wukong()).status.pending_changes != []
        assert await w.condition("WithinQuota", "second") == ("False", "QuotaExceeded"), "the guest still has them"
        await w.change(restartAt="now")
        await w.phase("Running", "second")
        assert (await quota(w)).status.used.storage == "30Gi", "a claim that stays is still used"
        await w.client.delete(PersistentVolumeClaim, "web-data", SPACE)
        await asyncio.sleep(120)
        assert (await quota(w)).status.used.storage == "20Gi"


async def test_an_instancetype_cannot_be_counted() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, cpu=8)
        given = {"instancetype": {"name": "u1"}, "disks": [DISK]}
        body = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "spec": given}
        await w.client.create(body | {"metadata": {"name": "web", "namespace": SPACE}})
        await w.until_condition("WithinQuota", "False", "QuotaExceeded")
        text = "an instancetype cannot be counted where cpu or memory are limited: give cpu and memory"
        assert await w.message("WithinQuota") == f"WukongQuota default: {text}"
        assert await w.vm() is None
        await relimit(w, cpu=None, machines=1)
        await w.until_condition("WithinQuota", "True", "Granted")


async def test_there_is_one_quota_in_a_namespace() -> None:
    async with world(timings=QUICK) as w:
        head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongQuota"}
        with pytest.raises(Invalid, match="it is called default"):
            await w.client.create({**head, "metadata": {"name": "other", "namespace": SPACE}, "spec": {}})
        with pytest.raises(Invalid):
            await limit(w, cpu=-1)


async def test_a_decision_on_an_old_version_is_refused() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, machines=1)
        await w.running()
        old = await quota(w)
        await relimit(w, machines=2)
        stale = {"metadata": {"resourceVersion": old.metadata.resource_version}, "status": {"granted": []}}
        with pytest.raises(Conflict):
            await w.client.patch(WukongQuota, "default", MergePatch(stale), SPACE, subresource="status")
        assert all(
            b"resourceVersion" in (call.body or b"")
            for call in w.writes()
            if call.resource is not None and call.resource.kind == "WukongQuota"
        )


async def test_killed_after_every_write_no_one_slips_through() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        await limit(w, machines=1)
        await w.create("a")
        await w.create("b")

        async def one_runs() -> bool:
            assert len((await w.client.list(VirtualMachine, SPACE)).items) <= 1
            phases = sorted([(await w.wukong(name)).status.phase for name in ("a", "b")])
            return phases == ["Pending", "Running"]

        await by_mortals(w, one_runs)
        (first,) = await granted(w)
        async with operating(w.client):
            await w.delete(first)
            await w.gone(AnyWukong, first)
            await w.phase("Running", "b" if first == "a" else "a")


async def test_a_machine_that_asks_for_more_hears_of_every_grant() -> None:
    """Also where it has looked before the quota decided, and has not said yet that it waits."""
    async with world(timings=QUICK) as w:
        await limit(w, storage="1Ti")
        await w.running()
        for size in range(11, 31):
            await w.change(disks=[SPEC["disks"][0] | {"size": f"{size}Gi"}])
            await asyncio.sleep(20)
            assert await w.condition("WithinQuota") == ("True", "Granted")
            (volume,) = (await w.wukong()).status.volumes
            assert volume.size == f"{size}Gi"


async def test_a_grant_wakes_who_did_not_have_it_whatever_the_cache_says_of_it() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, storage="1Ti")
        await w.running()
        await w.running("other")
        before = await quota(w)
        machine = await w.wukong()
        machine.spec["disks"] = [SPEC["disks"][0] | {"size": "20Gi"}]  # as the cache has it: its status says Granted
        after = await quota(w)
        for grant in after.status.granted:
            grant.disks = {"system": "20Gi"}
        caches: Any = Known([machine, await w.wukong("other")], [after])
        assert [request.name for request in concerned(before, caches)] == [machine.metadata.name]
        assert list(concerned(after, caches)) == [], "nobody waits for anything"
        caches.kinds[WukongQuota] = Listed([])
        assert len(list(concerned(after, caches))) == 2


class Listed:
    """What a lister has."""

    def __init__(self, objects: list[Any]) -> None:
        self._objects = objects

    def list(self, namespace: str) -> list[Any]:
        return self._objects

    def get(self, name: str, namespace: str) -> Any:
        return next((obj for obj in self._objects if obj.metadata.name == name), None)


class Known:
    """Caches with these objects."""

    def __init__(self, machines: list[AnyWukong], quotas: list[WukongQuota]) -> None:
        self.kinds = {AnyWukong: Listed(machines), WukongQuota: Listed(quotas)}

    def lister(self, kind: Any) -> Listed:
        return self.kinds[kind]
