"""From birth to deletion, among the controllers of Kubernetes: creation, changes, scaling, volumes, the end."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos.resource import PAUSE, Nacos
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180)]
SLOW = [Rule(image="*nacos-server*", behave="ready after 20s")]


async def pods_of(world: World, name: str) -> list[Pod]:
    return (await world.client.list(Pod, SPACE, label_selector=f"app={name}")).items


@pytest.mark.spec("N-01", "N-07", "N-11")
async def test_a_standalone_comes_up_and_stays_quiet() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos-single", STANDALONE)
        found = await world.until("nacos-single")
        assert (found.status.version, found.status.healthy, found.status.leader) == ("2.0.4", True, "nacos-single-0")
        (node,) = found.status.conditions
        assert (node.type, node.status, node.pod_name) == ("leader", "true", "nacos-single-0")
        assert node.instance == (await pods_of(world, "nacos-single"))[0].status.pod_ip
        assert [(one.code, one.status) for one in found.status.event][-1] == (200, True)
        service = await world.client.get(Service, "nacos-single", SPACE)
        assert [port.port for port in service.spec.ports] == [8848, 7848, 9848]
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        assert [one.metadata.name for one in claims] == ["db-nacos-single-0"]
        await world.advance(60.0)
        before, asked = (await world.nacos("nacos-single")).metadata.resource_version, len(world.servers.calls)
        revision = world.cluster.server.store.revision
        await world.advance(600.0)
        assert (await world.nacos("nacos-single")).metadata.resource_version == before
        assert len(world.servers.calls) - asked >= 15  # it is looked at all the while
        changed = [name for name, table in world.cluster.server.store.tables.items() if table.revision > revision]
        assert set(changed) <= {"coordination.k8s.io/leases", "/nodes"}


@pytest.mark.spec("N-08", "N-17")
async def test_a_cluster_has_its_services_and_its_budget() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", CLUSTER)
        found = await world.until("nacos")
        assert [one.type for one in found.status.conditions] == ["leader", "follower", "follower"]
        services = await world.client.list(Service, SPACE, label_selector="app=nacos")
        assert sorted(one.metadata.name for one in services) == ["nacos-client", "nacos-headless"]
        await world.advance(60.0)
        budget = await world.client.get(PodDisruptionBudget, "nacos", SPACE)
        assert budget.spec.max_unavailable == 1
        assert (await world.nacos("nacos")).status.observed_generation == 1
        assert condition(found, "Available") == ("True", "Running")
        assert condition(found, "Progressing") == ("False", "Complete")
        # One pod to a node, where there are enough of them.
        assert len({pod.spec.node_name for pod in await pods_of(world, "nacos")}) == 3


@pytest.mark.spec("N-15")
async def test_an_image_rolls_out_one_pod_at_a_time_and_the_leader_last() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.create("nacos", CLUSTER)
        await world.until("nacos")
        gone: list[str] = []
        lowest = 3
        uids = {pod.metadata.name: pod.metadata.uid for pod in await pods_of(world, "nacos")}
        await world.change("nacos", image="harbor.cloud.io/nacos/nacos-server:v2.0.5")
        while len(gone) < 3:
            await world.advance(2.0)
            pods = await pods_of(world, "nacos")
            ready = [p for p in pods if any(c.type == "Ready" and c.status == "True" for c in p.status.conditions)]
            lowest = min(lowest, len(ready))
            for pod in pods:
                if uids[pod.metadata.name] != pod.metadata.uid and pod.metadata.name not in gone:
                    gone.append(pod.metadata.name)
        assert gone == ["nacos-2", "nacos-1", "nacos-0"]  # nacos-0 leads
        assert lowest >= 2
        images = {pod.spec.containers[0].image for pod in await pods_of(world, "nacos")}
        assert images == {"harbor.cloud.io/nacos/nacos-server:v2.0.5"}
        await world.until("nacos")
        assert len(await world.events("RollingUpdate")) == 3


@pytest.mark.spec("N-12", "N-15")
async def test_a_broken_image_stops_the_rollout_and_a_mended_one_goes_on() -> None:
    rules = [Rule(image="*:v2.0.9-broken", behave="image-pull-error"), *SLOW]
    async with a_world(rules=rules) as world, world.operating():
        await world.create("nacos", CLUSTER)
        await world.until("nacos")
        await world.change("nacos", image="nacos/nacos-server:v2.0.9-broken")
        await world.advance(2.0)
        found = await world.until("nacos", "Failed")
        assert "nacos-2: " in found.status.event[-1].message
        assert "ImagePull" in found.status.event[-1].message
        assert condition(found, "Available")[0] == "True"  # two of three go on
        broken = [p.metadata.name for p in await pods_of(world, "nacos") if "broken" in str(p.spec.containers[0].image)]
        assert broken == ["nacos-2"]
        await world.change("nacos", image="nacos/nacos-server:v2.0.9")
        await world.advance(2.0)
        await world.until("nacos")


@pytest.mark.spec("N-15")
async def test_a_new_configuration_restarts_by_its_digest() -> None:
    async with a_world() as world, world.operating():
        spec = {**CLUSTER, "image": "nacos/nacos-server:v2.4.3", "config": "a=1\n"}
        await world.create("nacos", spec)
        first = await world.until("nacos")
        final = await world.client.get(ConfigMap, "nacos-final-config", SPACE)
        assert final.data["application.properties"].endswith("# ===== spec.config =====\na=1\n")
        uids = {pod.metadata.uid for pod in await pods_of(world, "nacos")}
        await world.change("nacos", config="a=2\n")
        await world.advance(2.0)
        second = await world.until("nacos")
        assert second.status.config_digest != first.status.config_digest
        assert not uids & {pod.metadata.uid for pod in await pods_of(world, "nacos")}


@pytest.mark.spec("N-15")
@pytest.mark.parametrize(
    "change",
    [
        {"env": [{"name": "JVM_XMS", "value": "512m"}]},
        {"resources": {"requests": {"memory": "64Mi"}}},
        {"readinessProbe": {"tcpSocket": {"port": 8848}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"k8sWrapper": {"PodSpec": {"priorityClassName": "system-cluster-critical"}}},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_every_change_of_the_pods_rolls_out_one_at_a_time(change: dict[str, Any]) -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.create("nacos", CLUSTER)
        await world.until("nacos")
        uids = {pod.metadata.uid for pod in await pods_of(world, "nacos")}
        await world.change("nacos", **change)
        for _ in range(60):
            await world.advance(5.0)
            assert sum(pod_is_ready(pod) for pod in await pods_of(world, "nacos")) >= 2
            if not uids & {pod.metadata.uid for pod in await pods_of(world, "nacos")}:
                break
        await world.until("nacos")
        assert len(await world.events("RollingUpdate")) == 3


@pytest.mark.spec("N-15")
async def test_a_referred_configuration_is_watched() -> None:
    async with a_world() as world, world.operating():
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": SPACE}}
        await world.client.create({**body, "data": {"user.properties": "x=1\n"}})
        await world.create(
            "nacos", {**STANDALONE, "image": "nacos/nacos-server:v2.4.3", "userConfigRef": {"name": "mine"}}
        )
        first = await world.until("nacos")
        await world.client.patch(ConfigMap, "mine", MergePatch({"data": {"user.properties": "x=2\n"}}), SPACE)
        await world.advance(2.0)
        second = await world.until("nacos")
        assert second.status.config_digest != first.status.config_digest


@pytest.mark.spec("N-13", "N-15")
async def test_scaling_up_and_down_keeps_the_quorum() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.create("nacos", CLUSTER)
        await world.until("nacos")
        await world.change("nacos", replicas=5)
        await world.advance(2.0)
        found = await world.until("nacos")
        assert (len(found.status.conditions), found.status.replicas) == (5, 5)
        await world.change("nacos", replicas=3)
        sizes = []
        while not sizes or sizes[-1] != 3:
            await world.advance(4.0)
            size = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas
            if not sizes or sizes[-1] != size:
                sizes.append(size)
        assert sizes in ([5, 4, 3], [4, 3])  # one member at a time
        found = await world.until("nacos")
        assert len(found.status.conditions) == 3


@pytest.mark.spec("N-15")
async def test_volumes_grow_and_never_shrink() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", STANDALONE)
        await world.until("nacos")
        pod = (await pods_of(world, "nacos"))[0]
        await world.change("nacos", volume={"requests": {"storage": "20Gi"}})
        await world.advance(5.0)
        await world.until("nacos")
        claim = await world.client.get(PersistentVolumeClaim, "db-nacos-0", SPACE)
        assert str(claim.spec.resources.requests["storage"]) == "20Gi"  # type: ignore[union-attr]
        template = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.volume_claim_templates[0]
        assert str(template.spec.resources.requests["storage"]) == "20Gi"  # type: ignore[union-attr]
        assert (await pods_of(world, "nacos"))[0].metadata.uid == pod.metadata.uid  # nobody was restarted
        await world.change("nacos", volume={"requests": {"storage": "5Gi"}})
        await world.advance(10.0)
        found = await world.nacos("nacos")
        assert found.status.event[-1].code == 301
        assert "volumes cannot shrink from 20Gi to 5Gi" in found.status.event[-1].message


@pytest.mark.spec("N-16")
@pytest.mark.parametrize(("volume", "left"), [({}, ["db-nacos-0"]), ({"deletionPolicy": "Delete"}, [])])
async def test_children_go_with_the_resource_and_claims_by_policy(volume: dict[str, str], left: list[str]) -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", {**STANDALONE, "volume": {**STANDALONE["volume"], **volume}})
        await world.until("nacos")
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        for kind in (StatefulSet, Service, Pod, Secret, Job, PodDisruptionBudget):
            items = await world.client.list(kind, SPACE)
            assert [one.metadata.name for one in items if one.metadata.name.startswith("nacos")] == []
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        assert [one.metadata.name for one in claims] == left


@pytest.mark.spec("N-17")
async def test_pause_leaves_everything_as_it_is() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", CLUSTER)
        await world.until("nacos")
        await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {PAUSE: "true"}}}), SPACE)
        await world.advance(5.0)
        await world.change("nacos", replicas=5)
        await world.client.delete(Service, "nacos-client", SPACE)
        await world.advance(60.0)
        found = await world.nacos("nacos")
        assert condition(found, "Paused") == ("True", "Annotation")
        assert len(await pods_of(world, "nacos")) == 3
        await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {PAUSE: None}}}), SPACE)
        await world.advance(5.0)
        found = await world.until("nacos")
        assert condition(found, "Paused") == ("False", "Resumed")
        assert len(await pods_of(world, "nacos")) == 5
        assert await world.client.get(Service, "nacos-client", SPACE)
