"""An autoscaler and its target: conflicts, refusals, bounds, and several metrics, with metrics that the test gives."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge.client import Client, MergePatch
from konverge.client.call import Call
from konverge.client.errors import error_from_answer
from konverge.kube.horizontalpodautoscaler import controller as autoscaler
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.objects.times import now
from konverge.wire.message import Response
from tests.kube.conftest import running
from tests.kube.interposed import Interposed
from tests.kube.triggers import Triggers, change

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-44")]


class World:
    """A Deployment `web` whose pods use what the test says."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.interposed = Interposed(client)
        self.interposed.rules += [self._metrics, self._refuse]
        self.usage: dict[str, str] = {"cpu": "500m"}
        self.refusals: list[int] = []

    async def setup(self, replicas: int = 2, *, pods: int = 2, **spec: Any) -> None:
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        body = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        meta = {"name": "web", "namespace": "default"}
        await self.client.create(from_dict(Deployment, {"metadata": meta, "spec": body}))
        for number in range(pods):
            document = {"metadata": {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}}}
            await self.client.create(from_dict(Pod, {**document, "spec": template["spec"]}))
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
            status = {"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": [ready]}
            await self.client.patch(Pod, f"p{number}", MergePatch({"status": status}), "default", subresource="status")
        await self.scaler("web", **spec)

    async def scaler(self, name: str, **spec: Any) -> None:
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        whole = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": cpu}], **spec,
        }  # fmt: skip
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": whole}
        await self.client.create(from_dict(HorizontalPodAutoscaler, body))

    def _metrics(self, call: Call) -> Response | None:
        if call.verb != "list" or "metrics.k8s.io" not in call.target():
            return None
        items = [
            {
                "metadata": {"name": f"p{number}"}, "timestamp": now(),
                "containers": [{"name": "main", "usage": self.usage}],
            }
            for number in range(2)
        ]  # fmt: skip
        return Response(200, body=msgspec.json.encode({"kind": "PodMetricsList", "metadata": {}, "items": items}))

    def _refuse(self, call: Call) -> Response | None:
        if call.verb == "update" and call.target().endswith("/scale") and self.refusals:
            raise error_from_answer(self.refusals.pop(0), b'{"kind":"Status","message":"refused"}')
        return None

    async def replicas(self) -> int:
        return (await self.client.get(Deployment, "web", "default")).spec.replicas or 0

    async def status(self) -> tuple[int | None, int, dict[str, tuple[str, str]]]:
        found = (await self.client.get(HorizontalPodAutoscaler, "web", "default")).status
        conditions = {item.type: (item.status, item.reason or "") for item in found.conditions}
        return found.current_replicas, found.desired_replicas, conditions

    async def events(self) -> list[tuple[str | None, str]]:
        events = (await self.client.list(Event, "default")).items
        assert {event.source.component for event in events if event.source} <= {"horizontal-pod-autoscaler"}
        return [(event.reason, event.message or "") for event in events]


@pytest.mark.parametrize(("conflicts", "scaled"), [(1, True), (4, True), (5, False)])
async def test_a_conflict_is_tried_again_on_the_newest_version(client: Client, conflicts: int, scaled: bool) -> None:
    world = World(client)
    world.usage, world.refusals = {"cpu": "750m"}, [409] * conflicts
    await world.setup()
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(1)
        assert await world.replicas() == (3 if scaled else 2)
        _, _, conditions = await world.status()
        assert conditions["AbleToScale"] == (("True", "SucceededRescale") if scaled else ("False", "FailedUpdateScale"))
        assert [reason for reason, _ in await world.events()] == ["SuccessfulRescale" if scaled else "FailedRescale"]


async def test_a_status_that_is_the_same_is_not_written_again(client: Client) -> None:
    world = World(client)
    await world.setup()
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(60)
        before = len(world.interposed.writes())
        assert before
        await asyncio.sleep(120)
        assert world.interposed.writes()[before:] == []


async def test_a_refused_change_leaves_the_status_as_it_was_and_is_tried_again(client: Client) -> None:
    world = World(client)
    world.usage, world.refusals = {"cpu": "750m"}, [500]
    await world.setup()
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(1)
        assert (await world.status())[:2] == (2, 0)
        ((reason, message),) = await world.events()
        assert reason == "FailedRescale"
        assert message == (
            "New size: 3; reason: cpu resource utilization (percentage of request) above target; error: refused"
        )
        await asyncio.sleep(15)
        assert await world.replicas() == 3
        live = await client.get(HorizontalPodAutoscaler, "web", "default")
        assert (live.status.current_replicas, live.status.desired_replicas) == (2, 3)
        assert live.status.last_scale_time is not None
        assert live.status.observed_generation == live.metadata.generation


async def test_the_highest_of_several_metrics_counts(client: Client) -> None:
    def metric(name: str, percent: int) -> dict[str, Any]:
        target = {"type": "Utilization", "averageUtilization": percent}
        return {"type": "Resource", "resource": {"name": name, "target": target}}

    world = World(client)
    world.usage = {"cpu": "1", "memory": "200Mi"}
    await world.setup(metrics=[metric("cpu", 50), metric("memory", 50), metric("cpu", 80)])
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(1)
        assert await world.replicas() == 4  # memory asks for 8: twice as many, or 4, is the most at a time
        (event,) = await world.events()
        assert event[1] == "New size: 4; reason: memory resource utilization (percentage of request) above target"
        live = await client.get(HorizontalPodAutoscaler, "web", "default")
        assert [item.resource_.name for item in live.status.current_metrics if item.resource_] == [
            "cpu",
            "memory",
            "cpu",
        ]


@pytest.mark.parametrize(
    ("replicas", "bounds", "expected"),
    [(2, {"minReplicas": 2, "maxReplicas": 2}, 2), (1, {"minReplicas": 1}, 1), (3, {"maxReplicas": 2}, 2)],
)
async def test_bounds_are_inclusive(client: Client, replicas: int, bounds: dict[str, int], expected: int) -> None:
    world = World(client)
    world.usage = {"cpu": "500m"}
    await world.setup(replicas, **bounds)
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(1)
        assert await world.replicas() == expected
        asked = any("metrics.k8s.io" in call.target() for call in world.interposed.calls)
        assert asked is (replicas <= bounds.get("maxReplicas", 10))


async def test_autoscalers_of_the_same_pods_name_each_other(client: Client) -> None:
    world = World(client)
    await world.setup()
    await world.scaler("other")
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(20)
        _, _, conditions = await world.status()
        assert conditions["ScalingActive"] == ("False", "AmbiguousSelector")
        messages = {message for reason, message in await world.events() if reason == "AmbiguousSelector"}
        assert messages == {
            "pods by selector app=web are controlled by more than one HPA (e.g. [{other default} {web default}])"
        }
        await client.delete(HorizontalPodAutoscaler, "other", "default")
        await asyncio.sleep(20)
        assert (await world.status())[2]["ScalingActive"] == ("True", "ValidMetricFound")


async def test_an_autoscaler_that_is_being_deleted_does_nothing(client: Client) -> None:
    world = World(client)
    world.usage = {"cpu": "1"}
    await world.setup()
    kept = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
    await client.patch(HorizontalPodAutoscaler, "web", kept, "default")
    await client.delete(HorizontalPodAutoscaler, "web", "default")
    async with running(world.interposed, autoscaler):
        await asyncio.sleep(20)
        assert await world.replicas() == 2


async def test_the_times_of_conditions_change_with_their_status() -> None:
    hpa = from_dict(HorizontalPodAutoscaler, {"metadata": {"name": "x"}, "spec": {"scaleTargetRef": {"kind": "D", "name": "x"}, "maxReplicas": 1}})  # fmt: skip # noqa: E501
    start = now()
    autoscaler.set_condition(hpa, "AbleToScale", True, "a", "m")
    await asyncio.sleep(10)
    autoscaler.set_condition(hpa, "AbleToScale", True, "b", "n")
    (condition,) = hpa.status.conditions
    assert (condition.status, condition.reason, condition.message) == ("True", "b", "n")
    assert condition.last_transition_time == start
    autoscaler.set_condition(hpa, "AbleToScale", False, "b", "n")
    autoscaler.set_condition(hpa, "Other", False, "b", "n")
    assert [(c.type, c.status, c.last_transition_time) for c in hpa.status.conditions] == [
        ("AbleToScale", "False", now()), ("Other", "False", now()),
    ]  # fmt: skip


def test_only_changes_of_the_spec_concern_an_autoscaler() -> None:
    (controller,) = autoscaler.controllers()

    def made(generation: int) -> HorizontalPodAutoscaler:
        meta = {"name": "x", "namespace": "default", "generation": generation, "uid": "u"}
        spec = {"scaleTargetRef": {"kind": "D", "name": "x"}, "maxReplicas": 1}
        return from_dict(HorizontalPodAutoscaler, {"metadata": meta, "spec": spec})

    trigger = Triggers(controller)
    assert trigger.of(None, made(1)) == trigger.of(made(1), made(2)) == {"horizontalpodautoscaler default/x"}
    assert trigger.of(made(1), made(1)) == trigger.of(made(1), None) == set()
    pod = from_dict(Pod, {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": []}})
    assert trigger.of(None, pod) == set()


async def test_what_was_remembered_goes_with_the_autoscaler(client: Client) -> None:
    world = World(client)
    await world.setup()
    (controller,) = autoscaler.controllers()
    scaler = controller.reconciler.__self__  # type: ignore[union-attr]

    class Same:
        @staticmethod
        def controllers() -> list[Any]:
            return [controller]

    async with running(world.interposed, Same):
        await asyncio.sleep(1)
        assert (len(scaler._histories), len(scaler._selectors)) == (1, 1)
        live = await client.get(HorizontalPodAutoscaler, "web", "default")
        assert not scaler.concerns(change(live, None))
        assert (scaler._histories, scaler._selectors) == ({}, {})
