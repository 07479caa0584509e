"""Machines that begin with a template: what they take, when they take it again, and what is left when it goes."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import msgspec
import pytest

from konverge.client import Invalid, MergePatch, Recording
from konverge.objects import to_dict, to_json
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret
from konverge.operators.wukong.kinds import DataVolume, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import AnyTemplate, AnyWukong
from konverge.operators.wukong.steps.template import TEMPLATE
from konverge.operators.wukong.steps.template import template as take_template
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.stage import OWNER, Stage, made, vm
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.world import IMAGE, SPACE, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-28")]

SYSTEM = {"name": "system", "size": "10Gi", "storageClassName": "fast", "image": IMAGE}
COMMON: dict[str, Any] = {"cpu": 2, "memory": "2Gi", "guest": "linux", "disks": [SYSTEM]}


async def template(w: World, name: str = "small", **spec: Any) -> None:
    head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongTemplate"}
    await w.client.create({**head, "metadata": {"name": name, "namespace": SPACE}, "spec": COMMON | spec})


async def alter(w: World, name: str = "small", **spec: Any) -> None:
    await w.client.patch(AnyTemplate, name, MergePatch({"spec": spec}), SPACE)


async def machine(w: World, name: str = "web", template: Any = None, **spec: Any) -> None:
    await w.client.create(
        {
            "apiVersion": "vm.novasphere.dev/v1alpha1",
            "kind": "Wukong",
            "metadata": {"name": name, "namespace": SPACE},
            "spec": {"template": template or {"name": "small"}, **spec},
        }
    )


async def cores(w: World, name: str = "web") -> int:
    vm = await w.vm(name)
    assert vm is not None
    cpu = vm.spec.template.spec.domain.cpu
    assert cpu is not None
    return (cpu.cores or 1) * (cpu.sockets or 1)


async def memory(w: World, name: str = "web") -> str:
    vm = await w.vm(name)
    assert vm is not None
    given = vm.spec.template.spec.domain.memory
    assert given is not None
    return str(given.guest)


async def test_a_machine_says_only_what_differs() -> None:
    async with world(timings=QUICK) as w:
        await template(w)
        await machine(w, memory="4Gi", disks=[{"name": "system", "size": "12Gi"}, {"name": "data", "size": "1Gi"}])
        shown = await w.phase("Running")
        assert (await cores(w), await memory(w)) == (2, "4Gi")
        volume = await w.client.get(DataVolume, "web-system", SPACE)
        assert volume.spec.source is not None
        assert volume.spec.source.http is not None
        assert volume.spec.source.http.url == IMAGE
        assert [entry.size for entry in shown.status.volumes] == ["12Gi", "1Gi"]
        assert await w.condition("TemplateResolved") == ("True", "Resolved")
        assert await w.message("TemplateResolved") == "as in generation 1 of WukongTemplate small"
        assert shown.status.template is not None
        assert shown.status.template.generation == 1
        assert (await w.events()).count("TemplateTaken") == 1
        assert "cpu" not in shown.spec, "the spec stays as its user has written it"
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []


async def test_a_changed_template_waits_until_it_is_asked_for() -> None:
    async with world(timings=QUICK) as w:
        await template(w)
        await machine(w)
        await w.phase("Running")
        before = await w.vmi()
        await alter(w, cpu=4, disks=[SYSTEM | {"image": "https://example.com/newer.img"}])
        await w.until_condition("TemplateResolved", "True", "NewerTemplate")
        assert "generation 1" in await w.message("TemplateResolved")
        assert "set spec.template.updateAt" in await w.message("TemplateResolved")
        await asyncio.sleep(120)
        assert await cores(w) == 2
        await alter(w, cpu=2, disks=[SYSTEM])
        await w.until_condition("TemplateResolved", "True", "Resolved")
        await alter(w, cpu=4, disks=[SYSTEM | {"image": "https://example.com/newer.img"}])
        await w.until_condition("TemplateResolved", "True", "NewerTemplate")
        await machine(w, "second")
        await w.phase("Running", "second")
        assert await cores(w, "second") == 4, "a new machine takes it as it is"

        await alter(w, disks=[SYSTEM])
        await w.change(template={"updateAt": "monday"})
        await w.until_condition("TemplateResolved", "True", "Resolved")
        await asyncio.sleep(30)
        shown = await w.wukong()
        assert shown.status.template is not None
        assert (shown.status.template.update_at, shown.status.template.generation) == ("monday", 5)
        assert await cores(w) == 4
        after = await w.vmi()
        assert before is not None
        assert after is not None
        assert after.metadata.uid == before.metadata.uid, "nothing restarts unless the machine says so"

        await alter(w, cpu=6)
        await asyncio.sleep(60)
        assert await cores(w) == 4, "once for each updateAt"
        await w.change(template={"updateAt": None})
        await asyncio.sleep(60)
        assert await cores(w) == 4, "taking it back asks for nothing"
        await w.change(template={"updateAt": "monday"})
        await asyncio.sleep(60)
        assert await cores(w) == 6


async def test_a_template_that_goes_leaves_its_machines_as_they_are_and_says_so() -> None:
    async with world(timings=QUICK) as w:
        await template(w)
        await machine(w)
        await w.phase("Running")
        await w.client.delete(AnyTemplate, "small", SPACE)
        await w.until_condition("TemplateResolved", "False", "TemplateDeleted")
        assert await w.message("TemplateResolved") == (
            "WukongTemplate small was deleted: the machine keeps what it has taken from its generation 1"
        )
        await w.change(cpu=3, restartAt="now", template={"updateAt": "now"})
        await asyncio.sleep(60)
        assert await cores(w) == 3
        assert await memory(w) == "2Gi"
        assert await w.condition("Ready") == ("True", "VMRunning")
        assert (await w.events()).count("TemplateDeleted") == 1
        await template(w, memory="3Gi")
        await w.until_condition("TemplateResolved", "True", "Resolved")
        await asyncio.sleep(30)
        assert await memory(w) == "3Gi", "the request was still waiting"
        await w.delete()
        await w.gone(AnyWukong, "web")
        await w.gone(PersistentVolumeClaim, "web-system")


async def test_without_its_template_nothing_is_made() -> None:
    async with world(timings=QUICK) as w:
        await machine(w)
        await w.until_condition("SpecValid", "False", "TemplateNotFound")
        assert await w.condition("TemplateResolved") == ("False", "TemplateNotFound")
        assert await w.condition("Ready") == ("False", "TemplateNotFound")
        assert (await w.wukong()).status.message == "there is no WukongTemplate small"
        assert (await w.wukong()).status.phase == "Creating"
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []
        await template(w)
        await w.phase("Running")
        assert await w.condition("SpecValid") == ("True", "Valid")


async def test_another_template_is_taken_when_it_is_there() -> None:
    async with world(timings=QUICK) as w:
        await template(w)
        await machine(w)
        await w.phase("Running")
        await w.change(template={"name": "large"})
        await w.until_condition("TemplateResolved", "False", "TemplateNotFound")
        assert await w.message("TemplateResolved") == (
            "there is no WukongTemplate large: the machine keeps what it has taken from small"
        )
        assert await w.condition("Ready") == ("True", "VMRunning")
        await template(w, "large", cpu=8)
        await w.until_condition("TemplateResolved", "True", "Resolved")
        await asyncio.sleep(30)
        assert await cores(w) == 8
        await w.change(template=None, cpu=1, memory="1Gi", disks=[SYSTEM])
        await asyncio.sleep(30)
        assert await cores(w) == 1
        assert await w.condition("TemplateResolved") == ("", "")
        assert (await w.wukong()).status.template is None


async def test_what_does_not_fit_is_not_taken() -> None:
    async with world(timings=QUICK) as w:
        await template(w, memory=None)
        await machine(w)
        await w.until_condition("SpecValid", "False", "Invalid")
        assert await w.message("SpecValid") == (
            "with WukongTemplate small: spec.cpu: give cpu and memory, or an instancetype in place of both"
        )
        assert (await w.wukong()).status.template is None
        assert (await w.wukong()).status.phase == "Error"
        await alter(w, memory="2Gi")
        await w.phase("Running")
        await alter(w, disks=None, cpu=4)
        await w.change(template={"updateAt": "now"})
        await w.until_condition("TemplateResolved", "False", "TemplateInvalid")
        assert "WukongTemplate small is not taken" in await w.message("TemplateResolved")
        assert await w.condition("Ready") == ("True", "VMRunning")
        assert await cores(w) == 2
        assert await w.condition("SpecValid") == ("True", "Valid")


async def test_the_definition_asks_a_machine_without_a_template_for_everything() -> None:
    async with world(timings=QUICK) as w:
        for lacking in ("disks", "memory", "cpu"):
            whole = {"cpu": 1, "memory": "1Gi", "disks": [SYSTEM]}
            del whole[lacking]
            body = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "spec": whole}
            with pytest.raises(Invalid):
                await w.client.create(body | {"metadata": {"name": "web", "namespace": SPACE}})
        with pytest.raises(Invalid, match="in place of both"):
            await template(w, instancetype={"name": "u1"})
        with pytest.raises(Invalid, match="only one disk is the boot disk"):
            await template(w, disks=[SYSTEM | {"boot": True}, SYSTEM | {"name": "b", "boot": True}])


async def test_a_lost_status_does_not_bring_the_newest_template_in() -> None:
    async with world(timings=QUICK) as w:
        await template(w)
        await machine(w)
        await w.phase("Running")
        await alter(w, cpu=8)
        await asyncio.sleep(30)
        await w.client.patch(AnyWukong, "web", MergePatch({"status": None}), SPACE, subresource="status")
        await asyncio.sleep(60)
        assert await cores(w) == 2
        shown = await w.wukong()
        assert shown.status.template is not None
        assert shown.status.template.generation == 1
        assert await w.condition("TemplateResolved") == ("True", "NewerTemplate")


SECRETS = ("s3cret", "$6$salt$hash")
USERS: dict[str, Any] = {
    "cloudInitUser": {"name": "first", "password": SECRETS[0]},
    "users": [{"name": "second", "passwordHash": SECRETS[1]}, {"name": "third"}],
}


async def shown_by_the_machine(w: World) -> str:
    vm = await w.vm()
    assert vm is not None
    return to_json(to_dict(vm)).decode()


async def user_data(w: World) -> str:
    secret = await w.client.get(Secret, "web-cloudinit", SPACE)
    return base64.b64decode(secret.data["userdata"]).decode()


@pytest.mark.spec("W-45")
async def test_passwords_of_a_template_are_not_on_the_machine_and_outlive_a_lost_status() -> None:
    async with world(timings=QUICK) as w:
        await template(w, **USERS)
        await machine(w)
        taken = (await w.phase("Running")).status.template
        given, shown = await user_data(w), await shown_by_the_machine(w)
        assert taken is not None
        assert TEMPLATE in shown
        for secret in SECRETS:
            assert secret in given
            assert secret not in shown
        await alter(w, cloudInitUser={"name": "first", "password": "n3w"})
        await asyncio.sleep(30)
        await w.client.patch(AnyWukong, "web", MergePatch({"status": None}), SPACE, subresource="status")
        await asyncio.sleep(60)
        assert (await w.wukong()).status.template == taken, "the passwords too, from the Secret of cloud-init"
        assert await user_data(w) == given
        assert await w.condition("TemplateResolved") == ("True", "NewerTemplate")


@pytest.mark.spec("W-45")
@pytest.mark.parametrize(("owners", "password"), [((OWNER,), {"password": "s3cret"}), ((), {}), (None, {})])
async def test_passwords_come_back_from_a_secret_of_the_machine_alone(owners: Any, password: dict[str, str]) -> None:
    copy = {"name": "small", "spec": {"cloudInitUser": {"name": "first", "password": None}}}
    marked = vm(meta={"annotations": {TEMPLATE: json.dumps(copy)}})
    text = base64.b64encode(b"users: [{name: first, plain_text_passwd: s3cret}]").decode()
    secrets = [] if owners is None else [made(Secret, "web-cloudinit", owners=owners, data={"userdata": text})]
    stage = Stage({"template": {"name": "small"}}, marked, *secrets)
    assert not await take_template(stage.state)
    taken = stage.state.status.template
    assert taken is not None
    assert taken.spec == {"cloudInitUser": {"name": "first", **password}}


@pytest.mark.spec("W-45", "W-27")
async def test_passwords_that_an_earlier_version_wrote_on_a_machine_are_taken_off() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(cluster.client):
            await template(w, **USERS)
            await machine(w)
            await template(w, "plain")
            await machine(w, "other", {"name": "plain"})
            await w.phase("Running", "other")
            taken = (await w.phase("Running")).status.template
            await asyncio.sleep(60)
        old = {TEMPLATE: msgspec.json.encode(to_dict(taken), order="sorted").decode()}
        await w.client.patch(VirtualMachine, "web-vm", MergePatch({"metadata": {"annotations": old}}), SPACE)
        assert SECRETS[0] in await shown_by_the_machine(w)
        before, guest = await w.vm(), await w.vmi()
        recording = Recording(cluster.client)
        async with operating(recording):
            await asyncio.sleep(300)
        written = [(call.verb, call.name) for call in recording.writes if call.resource == VirtualMachine.resource]
        assert written == [("patch", "web-vm")], "once, and nothing where there are no passwords"
        shown = await shown_by_the_machine(w)
        assert not any(secret in shown for secret in SECRETS)
        after, same = await w.vm(), await w.vmi()
        assert before is not None
        assert after is not None
        assert guest is not None
        assert same is not None
        assert (after.metadata.generation, same.metadata.uid) == (before.metadata.generation, guest.metadata.uid)


async def test_killed_after_every_write() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        await template(w)
        await machine(w)

        async def runs() -> bool:
            return (await w.wukong()).status.phase == "Running"

        writes = await by_mortals(w, runs)
        assert writes[:3] == ["patch wukongs", "patch wukongs status", "patch wukongs status"]
        assert writes.count("patch datavolumes") == 1
        await alter(w, cpu=4)
        await w.change(template={"updateAt": "now"})

        async def updated() -> bool:
            return await cores(w) == 4

        await by_mortals(w, updated)
        async with operating(w.client):
            await w.delete()
            await w.gone(AnyWukong, "web")
