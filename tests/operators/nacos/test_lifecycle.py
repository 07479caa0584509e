"""From creation to deletion, with the controllers of Kubernetes: changes, scaling, volumes."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Invalid, MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos.resource import PAUSE, Nacos
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180)]
SLOW = [Rule(image="*nacos-server*", behave="ready after 20s")]


@pytest.mark.spec("N-01", "N-07", "N-11")
async def test_a_standalone_comes_up_and_stays_quiet() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos-single", STANDALONE)
        nacos = await world.until("nacos-single")
        assert (nacos.status.version, nacos.status.healthy, nacos.status.leader) == ("2.0.4", True, "nacos-single-0")
        (node,) = nacos.status.servers
        assert (node.type, node.status, node.pod_name) == ("leader", "true", "nacos-single-0")
        assert node.instance == (await world.pods("nacos-single"))[0].status.pod_ip
        assert [(event.code, event.status) for event in nacos.status.event][-1] == (200, True)
        service = await world.client.get(Service, "nacos-single", SPACE)
        assert [port.port for port in service.spec.ports] == [8848, 7848, 9848]
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        assert [claim.metadata.name for claim in claims] == ["db-nacos-single-0"]
        await world.advance(60.0)
        before, asked = (await world.nacos("nacos-single")).metadata.resource_version, len(world.servers.calls)
        revision = world.cluster.server.store.revision
        await world.advance(600.0)
        assert (await world.nacos("nacos-single")).metadata.resource_version == before
        assert len(world.servers.calls) - asked >= 15  # it is checked all the time
        changed = [name for name, table in world.cluster.server.store.tables.items() if table.revision > revision]
        assert set(changed) <= {"coordination.k8s.io/leases", "/nodes"}


@pytest.mark.spec("N-08", "N-17")
async def test_a_cluster_has_its_services_and_its_budget() -> None:
    async with a_world() as world, world.operating():
        nacos = await world.up("nacos", CLUSTER)
        assert [item.type for item in nacos.status.servers] == ["leader", "follower", "follower"]
        services = await world.client.list(Service, SPACE, label_selector="app=nacos")
        assert sorted(service.metadata.name for service in services) == ["nacos-client", "nacos-headless"]
        await world.advance(60.0)
        budget = await world.client.get(PodDisruptionBudget, "nacos", SPACE)
        assert budget.spec.max_unavailable == 1
        assert (await world.nacos("nacos")).status.observed_generation == 1
        assert condition(nacos, "Available") == ("True", "Running")
        assert condition(nacos, "Progressing") == ("False", "Complete")
        # One pod to a node, where there are enough of them.
        assert len({pod.spec.node_name for pod in await world.pods()}) == 3


@pytest.mark.spec("N-15")
@pytest.mark.parametrize(
    ("leading", "order"),
    [
        (0, ["nacos-2", "nacos-1", "nacos-0"]),
        (1, ["nacos-2", "nacos-0", "nacos-1"]),
        (2, ["nacos-1", "nacos-0", "nacos-2"]),
    ],
)
async def test_an_image_rolls_out_one_pod_at_a_time_and_the_leader_last(leading: int, order: list[str]) -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        world.servers.leading = leading
        nacos = await world.up("nacos", CLUSTER)
        assert nacos.status.leader == f"nacos-{leading}"
        replaced: list[str] = []
        lowest = 3
        uids = await world.uids()
        await world.change("nacos", image="harbor.cloud.io/nacos/nacos-server:v2.0.5")
        while len(replaced) < 3:
            await world.advance(2.0)
            lowest = min(lowest, sum(map(pod_is_ready, await world.pods())))
            replaced += [name for name in await world.restarted(uids) if name not in replaced]
        assert replaced == order
        assert world.replaced() == order, "each once, and no other"
        assert lowest >= 2
        images = {pod.spec.containers[0].image for pod in await world.pods()}
        assert images == {"harbor.cloud.io/nacos/nacos-server:v2.0.5"}
        await world.until("nacos")
        assert len(await world.events("RollingUpdate")) == 3


@pytest.mark.spec("N-12", "N-15")
async def test_a_broken_image_stops_the_rollout_and_a_mended_one_goes_on() -> None:
    rules = [Rule(image="*:v2.0.9-broken", behave="image-pull-error"), *SLOW]
    async with a_world(rules=rules) as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.change("nacos", image="nacos/nacos-server:v2.0.9-broken")
        await world.advance(2.0)
        nacos = await world.until("nacos", "Failed")
        assert "nacos-2: " in nacos.status.event[-1].message
        assert "ImagePull" in nacos.status.event[-1].message
        assert condition(nacos, "Available")[0] == "True"  # two of three go on
        broken = [p.metadata.name for p in await world.pods() if "broken" in str(p.spec.containers[0].image)]
        assert broken == ["nacos-2"]
        await world.update("nacos", image="nacos/nacos-server:v2.0.9")


@pytest.mark.spec("N-15")
async def test_a_new_configuration_restarts_by_its_digest() -> None:
    async with a_world() as world, world.operating():
        spec = {**CLUSTER, "image": "nacos/nacos-server:v2.4.3", "config": "a=1\n"}
        first = await world.up("nacos", spec)
        final = await world.client.get(ConfigMap, "nacos-final-config", SPACE)
        assert final.data["application.properties"].endswith("# ===== spec.config =====\na=1\n")
        uids = {pod.metadata.uid for pod in await world.pods()}
        second = await world.update("nacos", config="a=2\n")
        assert second.status.config_digest != first.status.config_digest
        assert not uids & {pod.metadata.uid for pod in await world.pods()}


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
        await world.up("nacos", CLUSTER)
        uids = {pod.metadata.uid for pod in await world.pods()}
        await world.change("nacos", **change)
        for _ in range(60):
            await world.advance(5.0)
            assert sum(pod_is_ready(pod) for pod in await world.pods()) >= 2
            if not uids & {pod.metadata.uid for pod in await world.pods()}:
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
        await world.up("nacos", CLUSTER)
        nacos = await world.update("nacos", replicas=5)
        assert (len(nacos.status.servers), nacos.status.replicas) == (5, 5)
        await world.change("nacos", replicas=3)
        sizes = []
        while not sizes or sizes[-1] != 3:
            await world.advance(4.0)
            size = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas
            if not sizes or sizes[-1] != size:
                sizes.append(size)
        assert sizes in ([5, 4, 3], [4, 3])  # one member at a time
        nacos = await world.until("nacos")
        assert len(nacos.status.servers) == 3


@pytest.mark.spec("N-15")
async def test_volumes_grow_and_never_shrink() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STANDALONE)
        pod = (await world.pods())[0]
        await world.change("nacos", volume={"requests": {"storage": "20Gi"}})
        await world.advance(5.0)
        await world.until("nacos")
        claim = await world.client.get(PersistentVolumeClaim, "db-nacos-0", SPACE)
        assert str(claim.spec.resources.requests["storage"]) == "20Gi"  # type: ignore[union-attr]
        template = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.volume_claim_templates[0]
        assert str(template.spec.resources.requests["storage"]) == "20Gi"  # type: ignore[union-attr]
        assert (await world.pods())[0].metadata.uid == pod.metadata.uid  # no pod was restarted
        await world.advance(40.0)
        with pytest.raises(Invalid, match="volumes cannot shrink"):
            await world.change("nacos", volume={"requests": {"storage": "10Gi"}})


@pytest.mark.spec("N-16")
@pytest.mark.parametrize(("volume", "left"), [({}, ["db-nacos-0"]), ({"deletionPolicy": "Delete"}, [])])
async def test_children_go_with_the_resource_and_claims_by_policy(volume: dict[str, str], left: list[str]) -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**STANDALONE, "volume": {**STANDALONE["volume"], **volume}})
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        for kind in (StatefulSet, Service, Pod, Secret, Job, PodDisruptionBudget):
            items = await world.client.list(kind, SPACE)
            assert [item.metadata.name for item in items if item.metadata.name.startswith("nacos")] == []
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        assert [claim.metadata.name for claim in claims] == left


@pytest.mark.spec("N-17")
async def test_pause_leaves_everything_as_it_is() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {PAUSE: "true"}}}), SPACE)
        await world.advance(5.0)
        await world.change("nacos", replicas=5)
        await world.client.delete(Service, "nacos-client", SPACE)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Paused") == ("True", "Annotation")
        assert len(await world.pods()) == 3
        await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {PAUSE: None}}}), SPACE)
        await world.advance(5.0)
        nacos = await world.until("nacos")
        assert condition(nacos, "Paused") == ("False", "Resumed")
        assert len(await world.pods()) == 5
        assert await world.client.get(Service, "nacos-client", SPACE)
