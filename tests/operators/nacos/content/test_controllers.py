"""What leads to a reconcile of content at once, and what does not.

There is no operator of servers here, and no server: a Nacos is an object that others write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.cache.record import receive
from konverge.client import MergePatch
from konverge.objects import crd
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.operators.nacos.content.controllers import (
    _nacos_of,
    _password_of,
    _source_of,
    _space_of,
    content_controllers,
)
from konverge.operators.nacos.content.kinds import KINDS, NacosConfig, NacosUser
from konverge.operators.nacos.resource import PAUSE, Nacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.runtime import Manager, find_condition
from konverge.runtime.reconciled import Reconciled
from konverge.sim.cluster import Cluster
from tests.operators.nacos.world import SPACE, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-31")]
SPECS: dict[str, dict[str, Any]] = {
    "NacosNamespace": {"id": "dev", "name": "dev"},
    "NacosConfig": {"dataId": "app.yaml", "content": "a: 1"},
    "NacosUser": {"username": "ann"},
    "NacosPermission": {"role": "readers", "resource": "public:*:*", "action": "r"},
}
_BY_KIND = {kind.resource.kind: kind for kind in KINDS}


class Watched:
    """A cluster, and the controllers of content."""

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        self.client = cluster.client
        self._cluster = cluster
        self._manager = manager

    async def create(self, kind: str, name: str, spec: dict[str, Any], *, nacos: str = "nacos") -> None:
        ref = {} if kind == "Nacos" else {"nacosRef": {"name": nacos}}
        body = {"apiVersion": "nacos.io/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": SPACE}}
        await self.client.create({**body, "spec": {**ref, **spec}})
        await self.pass_on()

    async def nacos(self, **change: Any) -> None:
        await self.client.patch(Nacos, "nacos", MergePatch(change), SPACE)
        await self.pass_on()

    async def nacos_status(self, **status: Any) -> None:
        await self.client.patch(Nacos, "nacos", MergePatch({"status": status}), SPACE, subresource="status")
        await self.pass_on()

    async def plain(self, kind: str, name: str, **content: Any) -> None:
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": SPACE}}
        await self.client.create({**body, **content})
        await self.pass_on()

    async def pass_on(self) -> None:
        """Time for events; the earliest retry comes later."""
        await self._cluster.clock.advance(0.5)

    async def reason(self, kind: str, name: str) -> str:
        obj: Any = await self.client.get(_BY_KIND[kind], name, SPACE)
        condition = find_condition(obj.status.conditions, "Ready")
        return condition.reason if condition is not None else ""

    def waits(self, controller: str) -> list[float]:
        """After how many seconds its reconciles want to look again, from now on."""
        seen: list[float] = []

        def note(ended: Reconciled) -> None:
            if ended.controller == controller:
                seen.append(ended.result.requeue_after)

        self._manager.on_reconciled.append(note)
        return seen

    def reconciles(self, kind: str) -> int:
        return sum(self._manager.engines[kind.lower()].numbers.results.values())


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    async with Cluster(nodes=0) as cluster:
        for kind in (Nacos, *KINDS):
            await cluster.client.create(crd(kind))
        await cluster.settle()
        manager = Manager(cluster.client, name="content", check_permissions=False)
        for controller in content_controllers(HttpNacosServers()):
            manager.add(controller)
        async with manager.running():
            yield Watched(cluster, manager)


@pytest.mark.parametrize("kind", SPECS)
async def test_content_follows_the_life_of_its_nacos(kind: str) -> None:
    async with watched() as w:
        await w.create(kind, "one", SPECS[kind])
        assert await w.reason(kind, "one") == "NacosNotFound"
        await w.create("Nacos", "nacos", STANDALONE)
        assert await w.reason(kind, "one") == "NacosNotReady"
        await w.nacos(metadata={"finalizers": ["test.dev/kept"]})
        await w.client.delete(Nacos, "nacos", SPACE)
        await w.pass_on()
        assert await w.reason(kind, "one") == "NacosDeleting"
        await w.nacos(metadata={"finalizers": None})
        assert await w.reason(kind, "one") == "NacosNotFound"


@pytest.mark.parametrize("kind", SPECS)
async def test_health_of_a_nacos_and_the_own_status_lead_nowhere(kind: str) -> None:
    async with watched() as w:
        await w.create("Nacos", "nacos", STANDALONE)
        await w.create("Nacos", "other", STANDALONE)
        await w.create(kind, "one", SPECS[kind])
        before = w.reconciles(kind)
        await w.nacos_status(leader="nacos-0", version="2.4.3")
        status = MergePatch({"status": {"nacosUid": "abc"}})
        await w.client.patch(_BY_KIND[kind], "one", status, SPACE, subresource="status")
        await w.client.patch(Nacos, "other", MergePatch({"spec": {"image": "b:v2.4.3"}}), SPACE)
        await w.pass_on()
        assert w.reconciles(kind) == before

        await w.nacos_status(phase="Running")
        assert w.reconciles(kind) == before + 1
        await w.nacos(metadata={"annotations": {"a": "b"}})
        assert w.reconciles(kind) == before + 2
        await w.nacos(spec={"image": "b:v2.4.3"})
        assert w.reconciles(kind) == before + 3


@pytest.mark.parametrize("kind", SPECS)
async def test_a_change_of_content_and_an_annotation_count_at_once(kind: str) -> None:
    async with watched() as w:
        await w.create(kind, "one", SPECS[kind])
        before = w.reconciles(kind)
        await w.client.patch(_BY_KIND[kind], "one", MergePatch({"spec": {"adopt": True}}), SPACE)
        await w.pass_on()
        assert w.reconciles(kind) == before + 1
        obj = await w.client.get(_BY_KIND[kind], "one", SPACE)
        assert obj.status.observed_generation == obj.metadata.generation == 2
        await w.client.patch(_BY_KIND[kind], "one", MergePatch({"metadata": {"annotations": {PAUSE: "true"}}}), SPACE)
        await w.pass_on()
        obj = await w.client.get(_BY_KIND[kind], "one", SPACE)
        assert find_condition(obj.status.conditions, "Paused") is not None


@pytest.mark.spec("N-34")
@pytest.mark.parametrize("kind", SPECS)
async def test_the_second_of_two_goes_on_when_the_first_is_gone(kind: str) -> None:
    async with watched() as w:
        await w.create("Nacos", "nacos", STANDALONE)
        await w.create("Nacos", "other", STANDALONE)
        await w.create(kind, "one", SPECS[kind])
        await w.create(kind, "elsewhere", SPECS[kind], nacos="other")
        await w.create(kind, "two", SPECS[kind])
        reasons = [await w.reason(kind, name) for name in ("one", "elsewhere", "two")]
        assert reasons == ["NacosNotReady", "NacosNotReady", "Conflict"]
        await w.client.delete(_BY_KIND[kind], "one", SPACE)
        await w.pass_on()
        assert await w.reason(kind, "two") == "NacosNotReady"


async def test_a_configuration_follows_the_object_that_has_its_content() -> None:
    async with watched() as w:
        ref = {"name": "source", "key": "text"}
        await w.create("NacosConfig", "a", {"dataId": "a", "configMapKeyRef": ref})
        await w.create("NacosConfig", "b", {"dataId": "b", "secretKeyRef": ref})
        before = w.reconciles("NacosConfig")
        await w.plain("ConfigMap", "stranger", data={"text": "one"})
        await w.plain("Secret", "stranger", stringData={"text": "one"})
        assert w.reconciles("NacosConfig") == before
        await w.plain("ConfigMap", "source", data={"text": "one"})
        assert w.reconciles("NacosConfig") == before + 1
        await w.plain("Secret", "source", stringData={"text": "one"})
        assert w.reconciles("NacosConfig") == before + 2
        await w.client.delete(ConfigMap, "source", SPACE)
        await w.pass_on()
        assert w.reconciles("NacosConfig") == before + 3


async def test_a_configuration_follows_its_namespace_and_a_user_its_password() -> None:
    async with watched() as w:
        await w.create("NacosConfig", "a", {"dataId": "a", "content": "a", "namespace": "dev"})
        await w.create("NacosUser", "ann", {"username": "ann", "passwordSecretRef": {"name": "ann", "key": "password"}})
        configs, users = w.reconciles("NacosConfig"), w.reconciles("NacosUser")
        await w.create("NacosNamespace", "other", {"id": "other", "name": "other"})
        await w.plain("Secret", "bob", stringData={"password": "word"})
        assert (w.reconciles("NacosConfig"), w.reconciles("NacosUser")) == (configs, users)
        await w.create("NacosNamespace", "dev", SPECS["NacosNamespace"])
        assert w.reconciles("NacosConfig") > configs
        await w.plain("Secret", "ann", stringData={"password": "word"})
        assert w.reconciles("NacosUser") == users + 1


@pytest.mark.spec("N-36")
@pytest.mark.parametrize(("phase", "between"), [("Running", (9.0, 11.0)), ("Hibernated", (108.0, 132.0))])
async def test_content_is_looked_at_again_soon_after_a_fault_and_rarely_while_its_nacos_sleeps(
    phase: str, between: tuple[float, float]
) -> None:
    async with watched() as w:
        await w.create("Nacos", "nacos", STANDALONE)
        await w.nacos_status(phase=phase)
        waits = w.waits("nacosconfig")
        await w.create("NacosConfig", "one", SPECS["NacosConfig"])
        for number in range(40):
            await w.client.patch(
                NacosConfig, "one", MergePatch({"metadata": {"annotations": {"n": str(number)}}}), SPACE
            )
            await w.pass_on()
        first, last = between
        assert len(waits) >= 41
        assert all(first <= wait <= last for wait in waits)
        assert max(waits) - min(waits) > (last - first) / 2, "not all of them at the same time"


@pytest.mark.parametrize("index", [_nacos_of(NacosConfig), _space_of, _source_of, _password_of])
def test_an_object_that_cannot_be_read_is_in_no_index(index: Any) -> None:
    """One that was stored before its definition had a schema; reconciles are not held up by it."""
    _, record, meta = receive(b'{"metadata": {"name": "a", "namespace": "default", "uid": "1"}, "spec": 5}')
    assert list(index(record, meta)) == []


def test_the_controllers_give_nothing_up_and_stay_in_their_namespaces() -> None:
    controllers = content_controllers(HttpNacosServers(), namespaces=("a", "b"))
    assert [controller.name for controller in controllers] == [kind.lower() for kind in SPECS]
    for controller in controllers:
        assert controller.namespaces == ("a", "b")
        settings = controller.settings
        assert settings is not None
        assert (settings.workers, settings.timeout, settings.max_retries, settings.max_delay) == (8, 60.0, 0, 60.0)
        assert set(KINDS) <= controller.optional_kinds
    assert {Secret} == {owned.kind for controller in controllers for owned in controller.owned}
    assert [controller.kind for controller in controllers if controller.owned] == [NacosUser]
    assert NacosConfig in {controller.kind for controller in controllers}
