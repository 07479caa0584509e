"""Children that cannot be: refused by the API server, or of another owner. And children that are to stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.client import MergePatch, NotFound
from konverge.objects import Condition, ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ResourceQuota, ResourceQuotaSpec, Service
from konverge.objects.quantity import Quantity
from konverge.operators.webapp import WebApp
from konverge.runtime import controller_of
from konverge.runtime.owners import ADOPT_BY
from tests.operators.webapp.conftest import NAME, SPACE, World, reported

pytestmark = pytest.mark.virtual


def strange(kind: str, **metadata: Any) -> dict[str, Any]:
    """A Deployment or a Service of another owner, under our name."""
    labels = {"app.kubernetes.io/name": NAME}
    container = {"name": "web", "image": "theirs:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    specs: dict[str, Any] = {
        "Deployment": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        "Service": {"selector": {"app": "theirs"}, "ports": [{"port": 1}]},
    }
    return {
        "apiVersion": "apps/v1" if kind == "Deployment" else "v1",
        "kind": kind,
        "metadata": {"name": NAME, "namespace": SPACE, **metadata},
        "spec": specs[kind],
    }


def ready(app: WebApp, type: str = "Ready") -> Condition:
    return next(condition for condition in app.status.conditions if condition.type == type)


@pytest.mark.spec("A-09")
async def test_a_child_that_the_server_refuses_is_visible_and_goes_on_when_it_can(world: World) -> None:
    app = await world.create(env={"A=B": "x"})
    assert (ready(app).status, ready(app).reason) == ("False", "Invalid")
    assert "A=B" in ready(app).message
    assert ready(app).message == app.status.message
    assert ready(app, "Synced").status == "False"
    assert (app.status.observed_generation, ready(app).observed_generation) == (1, 1)
    assert app.status.phase == "Creating"
    assert (await world.service()).spec.ports[0].port == 80, "the other part is made all the same"
    with pytest.raises(NotFound):
        await world.deployment()
    await world.cluster.clock.advance(60)
    world.writes()
    await world.cluster.clock.advance(300)
    assert [reason for reason, _ in await world.events()] == ["ServiceCreated", "Invalid"]
    assert set(reported(world.writes())) == {"create deployments"}, "tried again, and nothing written about it"
    assert world.manager.engines["webapp"].numbers.errors == 0
    await world.client.patch(WebApp, NAME, MergePatch({"spec": {"env": {"A=B": None, "A": "x"}}}), SPACE)
    await world.cluster.settle()
    app = await world.app()
    assert (ready(app).status, ready(app, "Synced").status, app.status.phase) == ("True", "True", "Running")
    assert (app.status.observed_generation, app.status.message) == (2, "resources synced")
    assert [reason for reason, _ in await world.events()][2:] == ["DeploymentCreated", "ResourcesSynced"]


@pytest.mark.spec("A-09")
async def test_a_change_that_the_server_refuses_is_visible(world: World) -> None:
    await world.create()
    app = await world.change(env={"A=B": "x"}, port=8080)
    assert (ready(app).status, ready(app).reason, ready(app).observed_generation) == ("False", "Invalid", 2)
    assert (app.status.observed_generation, app.status.phase, app.status.ready_replicas) == (2, "Running", 2)
    assert (await world.service()).spec.ports[0].port == 8080
    app = await world.change(env=None)
    assert (ready(app).status, app.status.observed_generation) == ("True", 3)


@pytest.mark.spec("A-01", "A-09")
async def test_one_whose_pods_cannot_be_made_stays_in_creating(world: World) -> None:
    quota = ResourceQuotaSpec(hard={"pods": Quantity("0")})
    await world.client.create(ResourceQuota(metadata=ObjectMeta(name="none", namespace=SPACE), spec=quota))
    await world.cluster.settle()
    app = await world.create()
    assert (app.status.phase, ready(app).status, ready(app).reason) == ("Creating", "False", "ReplicasNotReady")
    assert (ready(app).message, ready(app).observed_generation) == ("0 of 2 replicas are ready", 1)
    assert ready(app, "Synced").status == "True"


@pytest.mark.spec("A-10")
@pytest.mark.parametrize("kind", ["Deployment", "Service"])
async def test_an_object_of_another_owner_is_a_condition_and_one_event(world: World, kind: str) -> None:
    before = await world.client.create(strange(kind))
    app = await world.create(replicas=0)
    assert (ready(app).status, ready(app).reason) == ("False", "NotOwned")
    assert (app.status.observed_generation, app.status.phase) == (1, "Creating")
    await world.cluster.clock.advance(300)
    await world.change(replicas=3)
    await world.client.delete(WebApp, NAME, SPACE)
    await world.cluster.settle()
    after = await world.client.get(Deployment if kind == "Deployment" else Service, NAME, SPACE)
    assert after.metadata.uid == before["metadata"]["uid"]
    assert after.metadata.generation == before["metadata"].get("generation", 0)
    assert (after.metadata.owner_references, after.metadata.labels) == ([], {})
    assert [reason for reason, _ in await world.events()].count("NotOwned") == 1
    with pytest.raises(NotFound):
        await world.app()


@pytest.mark.spec("A-10")
async def test_replicas_of_another_owner_do_not_count(world: World) -> None:
    await world.client.create(strange("Deployment"))
    await world.cluster.settle()
    app = await world.create(replicas=1)
    assert (app.status.ready_replicas, ready(app).status) == (0, "False")


@pytest.mark.spec("A-10")
@pytest.mark.parametrize("kind", ["Deployment", "Service"])
async def test_an_object_of_another_owner_is_adopted_when_it_asks_for_it(world: World, kind: str) -> None:
    asks = {ADOPT_BY: f"WebApp/{NAME}"}
    await world.client.create(strange(kind, annotations={ADOPT_BY: "WebApp/other"}))
    app = await world.create()
    assert ready(app).reason == "NotOwned"
    where = Deployment if kind == "Deployment" else Service
    old = await world.client.get(where, NAME, SPACE)
    await world.client.patch(where, NAME, MergePatch({"metadata": {"annotations": asks}}), SPACE)
    await world.cluster.clock.advance(60)
    app = await world.app()
    assert (ready(app).status, app.status.phase) == ("True", "Running")
    deployment, service = await world.deployment(), await world.service()
    for child in (deployment, service):
        owner = controller_of(child)
        assert owner is not None
        assert (owner.uid, owner.block_owner_deletion) == (app.metadata.uid, True)
    assert old.metadata.uid in (deployment.metadata.uid, service.metadata.uid)
    assert (deployment.spec.replicas, deployment.spec.template.spec.containers[0].image) == (2, "nginx:1.20")
    assert [port.port for port in service.spec.ports] == [80]
    await world.client.delete(WebApp, NAME, SPACE)
    await world.cluster.settle()
    with pytest.raises(NotFound):
        await world.client.get(where, NAME, SPACE)


@pytest.mark.spec("A-10")
async def test_one_with_another_controller_is_not_adopted_whatever_it_asks(world: World) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "", "controller": True}
    made = await world.client.create({"apiVersion": "v1", "kind": "ConfigMap",
                                      "metadata": {"name": "theirs", "namespace": SPACE}})  # fmt: skip
    owner["uid"] = made["metadata"]["uid"]
    await world.client.create(strange("Service", ownerReferences=[owner], annotations={ADOPT_BY: f"WebApp/{NAME}"}))
    app = await world.create()
    assert ready(app).reason == "NotOwned"
    assert [owner.kind for owner in (await world.service()).metadata.owner_references] == ["ConfigMap"]


@pytest.mark.spec("A-10")
@pytest.mark.parametrize("late", [False, True], ids=["operator first", "collector first"])
async def test_a_deletion_that_orphans_leaves_the_children(world: World, late: bool) -> None:
    await world.create()
    if late:
        world.cluster.hold("webapp", manager=world.manager)
    await world.client.delete(WebApp, NAME, SPACE, propagation="Orphan")
    await world.cluster.settle()
    if late:
        assert (await world.app()).metadata.finalizers == ["apps.konverge.dev/webapp"]
        world.cluster.release("webapp", manager=world.manager)
    await world.cluster.settle()
    with pytest.raises(NotFound):
        await world.app()
    await world.cluster.clock.advance(300)
    for child in (await world.deployment(), await world.service()):
        assert (child.metadata.owner_references, child.metadata.deletion_timestamp) == ([], None)


@pytest.mark.spec("A-10")
async def test_a_child_is_deleted_as_it_was_seen_or_not_at_all(world: World) -> None:
    """A collector that is faster than our watch may have orphaned it."""
    await world.create()
    children = [await world.deployment(), await world.service()]
    world.writes()
    await world.client.delete(WebApp, NAME, SPACE)
    await world.cluster.settle()
    deletions = [json.loads(call.body)["preconditions"] for call in world.writes() if call.verb == "delete"]
    assert deletions == [
        {"uid": child.metadata.uid, "resourceVersion": child.metadata.resource_version} for child in children
    ]
