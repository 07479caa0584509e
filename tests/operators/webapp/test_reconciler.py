"""A WebApp's life: made, changed, broken by hand, deleted."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from konverge.client import JsonPatch, MergePatch, NotFound
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ResourceQuota, ResourceQuotaSpec, Service
from konverge.objects.quantity import Quantity
from konverge.operators.webapp import WebApp
from konverge.operators.webapp.kind import spec_changed
from konverge.runtime import controller_of, is_true
from konverge.sim.kubelet.behaviour import ANNOTATION
from tests.operators.webapp.conftest import NAME, SPACE, World, reported

pytestmark = pytest.mark.virtual


@pytest.mark.spec("A-01")
async def test_a_new_webapp_goes_through_its_phases_and_owns_two_objects(world: World) -> None:
    phases: list[str] = []

    async def watch() -> None:
        async for event in world.client.watch(WebApp, SPACE):
            if event.object.status.phase not in ("", *phases[-1:]):
                phases.append(event.object.status.phase)

    watching = asyncio.create_task(watch())
    await world.cluster.settle()
    app = await world.create(env={"MODE": "production"}, port=8080)
    watching.cancel()
    assert phases == ["Pending", "Creating", "Running"]
    assert app.metadata.finalizers == ["apps.konverge.dev/webapp"]
    deployment, service = await world.deployment(), await world.service()
    for owned in (deployment, service):
        owner = controller_of(owned)
        assert owner is not None
        assert (owner.kind, owner.uid) == ("WebApp", app.metadata.uid)
    container = deployment.spec.template.spec.containers[0]
    assert (deployment.spec.replicas, container.image) == (2, "nginx:1.20")
    assert {item.name: item.value for item in container.env} == {"MODE": "production"}
    assert [port.port for port in service.spec.ports] == [8080]
    assert service.spec.selector == deployment.spec.selector.match_labels
    assert (app.status.ready_replicas, is_true(app.status.conditions, "Ready")) == (2, True)


@pytest.mark.spec("A-01")
async def test_one_without_replicas_runs_as_well(world: World) -> None:
    app = await world.create(replicas=0)
    assert (app.status.phase, app.status.ready_replicas) == ("Running", 0)


@pytest.mark.spec("A-02")
async def test_a_change_is_a_generation_that_was_not_observed(world: World) -> None:
    app = await world.create()
    assert (app.metadata.generation, app.status.observed_generation, spec_changed(app)) == (1, 1, False)
    await world.client.patch(WebApp, NAME, MergePatch({"status": {"message": "hi"}}), SPACE, subresource="status")
    assert (await world.app()).metadata.generation == 1
    world.cluster.hold("webapp", manager=world.manager)
    app = await world.change(replicas=3)
    assert (app.metadata.generation, app.status.observed_generation, spec_changed(app)) == (2, 1, True)


@pytest.mark.spec("A-03")
@pytest.mark.parametrize(
    ("change", "patch"),
    [
        ({"replicas": 3}, {"replicas": 3}),
        ({"image": "nginx:1.21"}, {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.21"}]}}}),
        (
            {"env": {"A": None, "B": "3", "C": "4"}},
            {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "web",
                                "env": [
                                    {"$patch": "replace"},
                                    {"name": "B", "value": "3"},
                                    {"name": "C", "value": "4"},
                                ],
                            }
                        ]
                    }
                }
            },
        ),
    ],
)
async def test_only_what_differs_is_written_to_the_deployment(
    world: World, change: dict[str, object], patch: dict[str, object]
) -> None:
    await world.create(env={"A": "1", "B": "2"})
    uid = (await world.deployment()).metadata.uid
    world.writes()
    app = await world.change(**change)
    writes = world.writes()
    assert reported(writes)[:2] == ["patch deployments", "patch webapps/status"]
    assert json.loads(writes[0].body) == {"metadata": {"uid": uid}, "spec": patch}
    container = (await world.deployment()).spec.template.spec.containers[0]
    assert {item.name: item.value for item in container.env} == app.spec.env
    assert (await world.deployment()).spec.replicas == app.spec.replicas
    assert container.image == app.spec.image


@pytest.mark.spec("A-03", "A-04")
async def test_a_change_that_makes_no_difference_writes_to_neither(world: World) -> None:
    """The order of an environment is none: deep comparison."""
    await world.create(env={"A": "1", "B": "2"})
    world.cluster.hold("webapp", manager=world.manager)
    await world.change(replicas=5)
    await world.change(replicas=2, env={"B": "2", "A": "1"})
    world.writes()
    world.cluster.release("webapp", manager=world.manager)
    await world.cluster.settle()
    assert reported(world.writes()) == ["patch webapps/status"]
    app = await world.app()
    assert app.status.observed_generation == app.metadata.generation == 3


@pytest.mark.spec("A-04")
async def test_the_service_is_written_when_the_port_differs_and_only_then(world: World) -> None:
    await world.create()
    world.writes()
    await world.change(port=8080)
    writes = world.writes()
    assert reported(writes) == ["patch services", "patch webapps/status"]
    assert json.loads(writes[0].body)["spec"] == {"ports": [{"name": "http", "port": 8080}]}
    port = (await world.service()).spec.ports[0]
    assert (port.port, port.target_port) == (8080, 8080)
    await world.change(replicas=3)
    assert "patch services" not in reported(world.writes())


@pytest.mark.spec("A-05")
async def test_events_tell_what_happened_and_nothing_else(world: World) -> None:
    await world.create()
    made = await world.events()
    assert [reason for reason, _ in made] == ["DeploymentCreated", "ServiceCreated", "ResourcesSynced"]
    await world.change(replicas=3)
    await world.change(port=8080)
    assert (await world.events())[3:] == [
        ("DeploymentSynced", "Deployment synced: replicas 2 → 3"),
        ("ResourcesSynced", "resources synced to generation 2"),
        ("ServiceSynced", "Service synced: port 80 → 8080"),
        ("ResourcesSynced", "resources synced to generation 3"),
    ]
    await world.cluster.clock.advance(300)
    assert len(await world.events()) == 7


@pytest.mark.spec("A-06")
async def test_a_sync_ends_with_one_write_of_the_status(world: World) -> None:
    before = await world.create()
    await world.cluster.clock.advance(90)
    world.writes()
    world.cluster.hold("webapp", manager=world.manager)
    await world.change(replicas=5, image="nginx:1.21", port=8080)
    done = await world.cluster.step("webapp", manager=world.manager)
    assert done is not None
    assert reported(done.writes) == ["patch deployments", "patch services", "patch webapps/status"]
    app = await world.app()
    assert (app.status.observed_generation, app.status.message) == (2, "resources synced")
    assert app.status.last_reconcile_time is not None
    assert before.status.last_reconcile_time is not None
    assert app.status.last_reconcile_time > before.status.last_reconcile_time


@pytest.mark.spec("A-06", "R-24")
async def test_a_wish_that_comes_during_the_first_round_is_not_taken_for_observed(world: World) -> None:
    """The status is written twice before the sync; by then the spec may be another one."""
    world.cluster.hold("webapp", manager=world.manager)
    await world.create()
    real, changed = world.recording.caller.call, False

    async def call(call):  # type: ignore[no-untyped-def]
        nonlocal changed
        if call.subresource == "status" and not changed:
            changed = True
            await world.client.patch(WebApp, NAME, MergePatch({"spec": {"replicas": 4}}), SPACE)
        return await real(call)

    world.recording.caller.call = call  # type: ignore[method-assign]
    await world.cluster.step("webapp", manager=world.manager)
    app = await world.app()
    assert (app.metadata.generation, app.status.observed_generation) == (2, 1)
    world.cluster.release("webapp", manager=world.manager)
    await world.cluster.settle()
    assert (await world.deployment()).spec.replicas == 4
    assert (await world.app()).status.observed_generation == 2


@pytest.mark.spec("A-07")
async def test_without_a_change_it_looks_every_half_minute_and_asks_nothing(world: World) -> None:
    await world.create()
    await world.cluster.clock.advance(30)
    world.recording.calls.clear()
    rounds = world.manager.engines["webapp"].numbers.results["requeue_after"]
    await world.cluster.clock.advance(300)
    assert world.recording.calls == []
    assert world.manager.engines["webapp"].numbers.results["requeue_after"] == rounds + 10


@pytest.mark.spec("A-08")
async def test_what_somebody_changed_is_repaired_at_once_and_told(world: World) -> None:
    await world.create(env={"A": "1"})
    container = "/spec/template/spec/containers/0"
    await world.client.patch(
        Deployment,
        NAME,
        JsonPatch(
            [
                {"op": "replace", "path": "/spec/replicas", "value": 7},
                {"op": "replace", "path": f"{container}/image", "value": "evil:1"},
                {"op": "add", "path": f"{container}/env/-", "value": {"name": "B", "value": "2"}},
            ]
        ),
        SPACE,
    )
    before = world.cluster.clock.now()
    await world.cluster.settle()
    assert world.cluster.clock.now() - before < 30
    deployment = await world.deployment()
    container_now = deployment.spec.template.spec.containers[0]
    assert (deployment.spec.replicas, container_now.image) == (2, "nginx:1.20")
    assert [item.name for item in container_now.env] == ["A"]
    assert (await world.events())[-1] == (
        "DriftRepaired",
        "Deployment was changed: replicas 7 → 2, image evil:1 → nginx:1.20, env",
    )
    spec = {"selector": {"else": "where"}, "ports": [{"name": "http", "port": 80, "targetPort": 9}]}
    await world.client.patch(Service, NAME, MergePatch({"spec": spec}), SPACE)
    await world.cluster.settle()
    assert (await world.events())[-1] == ("DriftRepaired", "Service was changed: port 80:9 → 80, selector")
    assert (await world.service()).spec.ports[0].target_port == 80


@pytest.mark.spec("A-08", "A-09")
@pytest.mark.parametrize("kind", [Deployment, Service])
async def test_what_somebody_deleted_is_made_again(
    world: World, kind: type[Deployment] | type[Service], caplog: pytest.LogCaptureFixture
) -> None:
    await world.create()
    with caplog.at_level(logging.WARNING, "konverge.controller"):
        await world.client.delete(kind, NAME, SPACE)
        await world.cluster.settle()
    assert (await world.client.get(kind, NAME, SPACE)).metadata.uid
    assert (await world.events())[-1] == ("DriftRepaired", f"{kind.__name__} was deleted and is made again")
    assert f"drift repaired: {kind.__name__} was deleted" in caplog.text
    app = await world.app()
    assert (app.status.phase, is_true(app.status.conditions, "Ready")) == ("Running", True)


@pytest.mark.spec("A-09")
async def test_replicas_that_are_not_ready_are_told_and_are_no_error(world: World) -> None:
    await world.create()
    template = {"metadata": {"annotations": {ANNOTATION: "never-ready"}}}
    await world.client.patch(Deployment, NAME, MergePatch({"spec": {"template": template}}), SPACE)
    app = await world.change(replicas=4)
    assert app.status.ready_replicas < 4
    ready = next(condition for condition in app.status.conditions if condition.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "ReplicasNotReady")
    assert ready.message == f"{app.status.ready_replicas} of 4 replicas are ready"
    assert app.status.phase == "Running"
    assert world.manager.engines["webapp"].numbers.errors == 0


@pytest.mark.spec("A-09")
async def test_a_repair_that_is_refused_is_tried_again_every_round(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.create()
    quota = ResourceQuotaSpec(hard={"services": Quantity("0")})
    await world.client.create(ResourceQuota(metadata=ObjectMeta(name="none", namespace=SPACE), spec=quota))
    await world.cluster.settle()
    with caplog.at_level(logging.WARNING, "konverge.controller"):
        await world.client.delete(Service, NAME, SPACE)
        await world.cluster.clock.advance(900)
    assert "health check failed" in caplog.text
    assert (await world.app()).status.message.startswith("Service cannot be repaired: ")
    assert world.manager.engines["webapp"].numbers.errors == 0
    await world.client.delete(ResourceQuota, "none", SPACE)
    await world.cluster.clock.advance(31)
    assert (await world.service()).spec.ports[0].port == 80


@pytest.mark.spec("A-08", "A-10")
async def test_an_object_of_somebody_else_is_neither_changed_nor_deleted(world: World) -> None:
    service = {"metadata": {"name": NAME, "namespace": SPACE}, "spec": {"ports": [{"port": 1}]}}
    await world.client.create({"apiVersion": "v1", "kind": "Service", **service})
    await world.create()
    assert (await world.service()).spec.ports[0].port == 1
    await world.client.delete(WebApp, NAME, SPACE)
    await world.cluster.settle()
    assert (await world.service()).spec.ports[0].port == 1
    with pytest.raises(NotFound):
        await world.app()


@pytest.mark.spec("A-10")
async def test_the_owned_objects_go_before_the_finalizer(world: World) -> None:
    await world.create()
    await world.client.patch(Service, NAME, MergePatch({"metadata": {"finalizers": ["test.dev/hold"]}}), SPACE)
    await world.cluster.settle()
    await world.client.delete(WebApp, NAME, SPACE)
    await world.cluster.clock.advance(300)
    with pytest.raises(NotFound):
        await world.deployment()
    assert (await world.app()).metadata.finalizers == ["apps.konverge.dev/webapp"]  # its Service is held
    await world.client.patch(Service, NAME, MergePatch({"metadata": {"finalizers": None}}), SPACE)
    await world.cluster.settle()
    with pytest.raises(NotFound):
        await world.app()
    with pytest.raises(NotFound):
        await world.service()
