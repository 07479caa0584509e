"""Objects of others with the name of a child: they stay as they are, and the Nacos says so."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Call, Client, MergePatch, Recording
from konverge.client.wrappers import Wrapper
from konverge.objects import from_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos.children.monitoring import ServiceMonitor
from konverge.operators.nacos.resource import Nacos
from konverge.runtime.owners import ADOPT_BY
from konverge.wire.message import Response
from tests.operators.nacos.test_exposure import MONITORED, install_service_monitors
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, SPACE, STANDALONE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-16", "N-20")]
THIRD: dict[str, Any] = {**STANDALONE, "image": "nacos/nacos-server:v3.0.3"}
LABELS = {"app": "cache"}
PODS = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Always", "containers": [{"name": "redis", "image": "redis:7"}]},
}
BACKEND = {"service": {"name": "shop", "port": {"number": 80}}}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}]}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
STRANGERS: dict[str, tuple[type[Any], str, dict[str, Any], dict[str, Any]]] = {
    "StatefulSet": (
        StatefulSet,
        "redis",
        {"spec": {"replicas": 1, "serviceName": "cache", "selector": {"matchLabels": LABELS}, "template": PODS}},
        STANDALONE,
    ),
    "ConfigMap": (ConfigMap, "redis", {"data": {"maxmemory": "1gb"}}, STANDALONE),
    "Service": (Service, "redis", {"spec": {"selector": LABELS, "ports": [{"port": 6379}]}}, STANDALONE),
    "headless": (
        Service,
        "redis-headless",
        {"spec": {"clusterIP": "None", "selector": LABELS, "ports": [{"port": 6379}]}},
        CLUSTER,
    ),
    "final": (ConfigMap, "redis-final-config", {"data": {"a": "b"}}, {**EMBEDDED, "config": "a=1\n"}),
    "Secret": (Secret, "redis-auth", {"stringData": {"token": "t"}}, THIRD),
    "Job": (Job, "redis-mysql-sql-init", {"spec": JOB}, {**MYSQL, "mysqlInitImage": "mysql:8"}),
    "script": (ConfigMap, "redis-mysql-sql-init", {"data": {"a": "b"}}, {**MYSQL, "mysqlInitImage": "mysql:8"}),
    "budget": (PodDisruptionBudget, "redis", {"spec": {"selector": {"matchLabels": LABELS}}}, CLUSTER),
    "Ingress": (Ingress, "redis", {"spec": {"defaultBackend": BACKEND}}, {**STANDALONE, "ingress": {"enabled": True}}),
    "claim": (PersistentVolumeClaim, "db-redis-0", {"spec": CLAIM}, STANDALONE),
}


def as_body(kind: type[Any], meta: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "metadata": meta, **rest}


async def make(world: World, kind: type[Any], name: str, body: dict[str, Any], **metadata: Any) -> Any:
    await world.client.create(as_body(kind, {"name": name, "namespace": SPACE, **metadata}, body))
    await world.advance(5.0)
    return await world.client.get(kind, name, SPACE)


def written(client: Recording) -> set[str]:
    """What was written beside the Nacos' own status, events and leases."""
    calls = ((call.verb, call.resource, call.name) for call in client.writes)
    known = [(verb, resource.kind, name) for verb, resource, name in calls if resource is not None]
    ours = ("Nacos", "Event", "Lease", "SelfSubjectAccessReview", "SelfSubjectRulesReview")
    return {f"{verb} {kind} {name}" for verb, kind, name in known if kind not in ours}


def same(after: Any, before: Any) -> bool:
    """Status and resourceVersion are the business of controllers."""
    metas = [(obj.metadata.uid, obj.metadata.labels, obj.metadata.annotations) for obj in (after, before)]
    references = after.metadata.owner_references == before.metadata.owner_references
    content = all(getattr(after, part, None) == getattr(before, part, None) for part in ("spec", "data"))
    return metas[0] == metas[1] and references and content


@pytest.mark.parametrize("which", STRANGERS)
async def test_a_name_that_is_taken_is_reported_and_nothing_is_written(which: str) -> None:
    kind, name, body, spec = STRANGERS[which]
    async with a_world() as world:
        world.mysql()
        stranger = await make(world, kind, name, body)
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.create("redis", spec)
            nacos = await world.until("redis", "Failed", limit=400.0)
            assert condition(nacos, "Ready") == ("False", "NotOwned")
            (event,) = await world.events("NotOwned")
            assert f"{kind.resource.kind} {name} exists" in event
            assert ADOPT_BY in event
            assert nacos.status.event[-1].message == event
            assert written(client) == set()
            assert not world.databases.calls
            assert same(await world.client.get(kind, name, SPACE), stranger)
            await world.client.delete(Nacos, "redis", SPACE)
            await world.advance(60.0)
            assert same(await world.client.get(kind, name, SPACE), stranger)


async def test_the_pods_of_a_strangers_stateful_set_keep_running() -> None:
    kind, name, body, spec = STRANGERS["StatefulSet"]
    async with a_world() as world, world.operating():
        await make(world, kind, name, body)
        pod = await world.client.get(Pod, "redis-0", SPACE)
        await world.create("redis", spec)
        await world.advance(300.0)
        assert (await world.client.get(Pod, "redis-0", SPACE)).metadata.uid == pod.metadata.uid


@pytest.mark.parametrize("which", ["ConfigMap", "Service", "Secret", "claim"])
async def test_an_object_is_handed_over_by_its_annotation(which: str) -> None:
    kind, name, body, spec = STRANGERS[which]
    async with a_world() as world, world.operating():
        world.servers.version = "3.0.3" if which == "Secret" else "2.0.4"
        if which == "Secret":
            body = {"stringData": {"token": "t" * 44, "identity_key": "k", "identity_value": "v"}}
        stranger = await make(world, kind, name, body)
        await world.create("redis", spec)
        await world.advance(20.0)
        assert condition(await world.nacos("redis"), "Ready") == ("False", "NotOwned")
        for adopter in ("Nacos/other", "Nacos/redis"):
            assert condition(await world.nacos("redis"), "Ready") == ("False", "NotOwned")
            patch = MergePatch({"metadata": {"annotations": {ADOPT_BY: adopter}}})
            await world.client.patch(kind, name, patch, SPACE)
            await world.advance(10.0)
        await world.until("redis")
        adopted = await world.client.get(kind, name, SPACE)
        assert adopted.metadata.uid == stranger.metadata.uid
        if which == "claim":
            return
        assert [owner.name for owner in adopted.metadata.owner_references] == ["redis"]
        if which == "Secret":
            assert adopted.data == stranger.data


async def test_the_clash_ends_when_the_object_goes() -> None:
    kind, name, body, spec = STRANGERS["Service"]
    async with a_world() as world, world.operating():
        await make(world, kind, name, body)
        await world.create("redis", spec)
        await world.advance(20.0)
        await world.client.delete(kind, name, SPACE)
        await world.advance(10.0)
        await world.until("redis")


async def test_two_resources_whose_children_have_the_same_name_do_not_fight() -> None:
    async with a_world() as world:
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("one", CLUSTER)
            await world.advance(60.0)
            service = await world.client.get(Service, "one-client", SPACE)
            client.calls.clear()
            await world.create("one-client", STANDALONE)
            await world.advance(120.0)
            assert written(client) == set()
            second = await world.nacos("one-client")
            assert condition(second, "Ready") == ("False", "NotOwned")
            assert "Service one-client exists and is controlled by Nacos one" in second.status.event[-1].message
            assert len(await world.events("NotOwned")) == 1
            assert condition(await world.nacos("one"), "Ready")[0] == "True"
            after = await world.client.get(Service, "one-client", SPACE)
            assert after.metadata.resource_version == service.metadata.resource_version


async def test_a_clash_does_not_end_the_care_for_running_servers() -> None:
    """Another object takes the place of a Service that was deleted."""
    async with a_world() as world:
        async with world.operating():
            await world.up("nacos", CLUSTER)
        await world.client.delete(Service, "nacos-client", SPACE)
        stranger = await make(world, Service, "nacos-client", {"spec": {"selector": LABELS, "ports": [{"port": 6379}]}})
        async with world.operating():
            await world.change("nacos", image="nacos/nacos-server:v2.0.5")
            await world.advance(20.0)
            asked, uids = len(world.servers.calls), await world.uids()
            await world.advance(60.0)
            assert len(world.servers.calls) > asked
            assert await world.restarted(uids) == []
            nacos = await world.nacos("nacos")
            assert condition(nacos, "Ready") == ("False", "NotOwned")
            assert condition(nacos, "Available")[0] == "True"
            assert same(await world.client.get(Service, "nacos-client", SPACE), stranger)


class CreatesFirst(Wrapper):
    """Another client creates the Service a moment before the operator does: after the look at the names."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.caller)
        self._client = client
        self.created: Service | None = None

    async def call(self, call: Call) -> Response:
        if call.resource == StatefulSet.resource and call.writes and self.created is None:
            kind, name, body, _ = STRANGERS["Service"]
            meta = {"name": name, "namespace": SPACE}
            self.created = from_dict(Service, await self._client.create(as_body(kind, meta, body)))
        return await self._inner.call(call)


async def test_an_object_that_appears_during_a_reconcile_is_left_alone() -> None:
    async with a_world() as world:
        calls = CreatesFirst(world.client)
        client = Client.__new__(Client)
        client._use_caller(calls, world.client.mapper)
        async with world.operating(client=client):
            await world.create("redis", STANDALONE)
            await world.advance(60.0)
            assert calls.created is not None
            assert same(await world.client.get(Service, "redis", SPACE), calls.created)
            assert condition(await world.nacos("redis"), "Ready") == ("False", "NotOwned")


async def test_a_strangers_service_monitor_is_neither_written_nor_deleted() -> None:
    async with a_world() as world:
        await install_service_monitors(world)
        async with world.operating():
            stranger = await make(world, ServiceMonitor, "nacos", {"spec": {"endpoints": []}})
            nacos = await world.up("nacos", {**STANDALONE, "metrics": MONITORED})
            assert condition(nacos, "Monitored") == ("False", "NotOwned")
            assert len(await world.events("NotOwned")) == 1
            await world.client.delete(ServiceMonitor, "nacos", SPACE)
            await world.advance(700.0)
            assert condition(await world.nacos("nacos"), "Monitored")[0] == "True"
            await world.client.delete(ServiceMonitor, "nacos", SPACE)
            stranger = await make(world, ServiceMonitor, "nacos", {"spec": {"endpoints": []}})
            await world.update("nacos", metrics={"serviceMonitor": {"enabled": False}})
            assert same(await world.client.get(ServiceMonitor, "nacos", SPACE), stranger)


async def test_a_strangers_secret_is_not_the_servers_identity() -> None:
    """Of a version that needs none: the operator would read keys that are not there."""
    async with a_world() as world, world.operating():
        await make(world, Secret, "redis-auth", {"stringData": {"password": "x"}})
        await world.up("redis", STANDALONE)
        assert {identity for _, identity in world.servers.calls} == {None}


async def test_claims_of_others_do_not_grow() -> None:
    async with a_world() as world, world.operating():
        await make(world, PersistentVolumeClaim, "db-nacos-7", {"spec": CLAIM}, labels={"middleware": "nacos"})
        await world.up("nacos", STANDALONE)
        await world.update("nacos", volume={"requests": {"storage": "20Gi"}})
        kept = await world.client.get(PersistentVolumeClaim, "db-nacos-7", SPACE)
        assert str(kept.spec.resources.requests["storage"]) == "1Gi"  # type: ignore[union-attr]
