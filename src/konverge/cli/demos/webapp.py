"""The story of a WebApp: created, changed in three fields, synced in one reconcile; the next one has nothing to do.

The log lines are the operator's own: it is held, let through one reconcile at a time, and listened to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from konverge.cli.demos.story import Phrases, Story, listening
from konverge.cli.install_objects import install_definitions
from konverge.client import MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.operators.webapp import WebApp, WebAppReconciler, WebAppSpec
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Context, Manager, Result
from konverge.sim import run
from konverge.sim.cluster import Cluster

SPACE = "default"
NAME = "test-webapp"
FIRST = WebAppSpec(image="nginx:1.20", replicas=2, port=80, env={"ENV": "production"})
CHANGE = {"replicas": 5, "image": "nginx:1.21", "port": 8080}

LABELS = {"replicas": "Replicas", "image": "Image", "env": "Env", "port": "Service Port"}
PHRASES: Phrases = {
    "reconcile called: WebApp %s, phase %s": lambda *of: ("test: Reconcile called [webapp {} phase {}]", *of),
    "handling phase %s of WebApp %s": lambda *of: ("test: handling phase {} [webapp {}]", *of),
    "the spec has changed, syncing: generation %s, observedGeneration %s": lambda *of: (
        "test: the spec has changed, syncing [generation {} observedGeneration {}]",
        *of,
    ),
    "%s differs: %s": lambda _, change: (
        "test: {} changes [old {} new {}]",
        LABELS[change.field],
        change.old,
        change.new,
    ),
    "syncing %s %s": lambda *of: ("test: syncing {} [name {}]", *of),
    "resources synced": lambda: ("test: resources synced []",),
}
"""What the operator logs -> how the story says it."""

CHINESE = {
    "=== WebApp: update and sync ===": "=== 测试练习 3: 更新与同步逻辑 ===",
    "Initial state:": "初始状态:",
    "\nChanging the spec:": "\n修改 Spec:",
    "new replicas: {}": "新的 Replicas: {}",
    "new image: {}": "新的 Image: {}",
    "new port: {}": "新的 Port: {}",
    "\nReconciling:": "\n触发协调:",
    "result: Requeue={}, RequeueAfter={}": "协调结果: Requeue={}, RequeueAfter={}",
    "\nAfter the sync:": "\n同步后状态:",
    "ObservedGeneration: {} (should be {})": "ObservedGeneration: {} (应该是 {})",
    "Deployment replicas: {} (should be {})": "Deployment Replicas: {} (应该是 {})",
    "Deployment image: {} (should be {})": "Deployment Image: {} (应该是 {})",
    "Service port: {} (should be {})": "Service Port: {} (应该是 {})",
    "Deployment replicas: {}": "Deployment Replicas: {}",
    "Deployment image: {}": "Deployment Image: {}",
    "✓ all resources are synced": "✓ 所有资源已正确同步",
    "✗ the resources are not synced": "✗ 资源同步失败",
    "Reconciling again (the spec has not changed):": "再次协调（无 Spec 变更）:",
    "the sync is skipped, health is checked": "应该跳过同步，只进行健康检查",
    "test: handling phase {} [webapp {}]": "test: 处理 {} 状态 [webapp {}]",
    "test: the spec has changed, syncing [generation {} observedGeneration {}]": (
        "test: 检测到 Spec 变更，开始同步 [generation {} observedGeneration {}]"
    ),
    "test: {} changes [old {} new {}]": "test: {} 变更 [old {} new {}]",
    "test: syncing {} [name {}]": "test: 同步 {} [name {}]",
    "test: resources synced []": "test: 资源同步完成 []",
}


class _Told(WebAppReconciler):
    """The operator itself; what it answered last is kept."""

    result: Result | None = None

    async def reconcile(self, ctx: Context[WebApp]) -> Result | None:
        self.result = await super().reconcile(ctx)
        return self.result


def play() -> Story:
    """Run it, in virtual time."""
    story = Story({"zh": CHINESE})
    run(_play(story))
    return story


async def _play(story: Story) -> None:
    reconciler = _Told()
    async with Cluster() as cluster:
        await install_definitions(cluster.client, [OPERATOR])
        manager = Manager(cluster.client, name=OPERATOR.identity)
        for controller in OPERATOR.controllers():
            manager.add(replace(controller, reconciler=reconciler))
        async with manager.running():
            await _create(story, cluster)
            cluster.hold("webapp", manager=manager)
            await _change(story, cluster)
            await _reconcile(story, cluster, manager, reconciler)
            await _compare(story, cluster)
            await _reconcile_again(story, cluster, manager, reconciler)
            cluster.release("webapp", manager=manager)


async def _create(story: Story, cluster: Cluster) -> None:
    story.heading("=== WebApp: update and sync ===")
    await cluster.client.create(WebApp(metadata=ObjectMeta(name=NAME, namespace=SPACE), spec=FIRST))
    await cluster.settle()
    app, deployment, _ = await _look(cluster)
    story.heading("Initial state:")
    story.fact("Generation: {}", app.metadata.generation)
    story.fact("ObservedGeneration: {}", app.status.observed_generation)
    story.fact("Deployment replicas: {}", deployment.spec.replicas)
    story.fact("Deployment image: {}", _image(deployment))


async def _change(story: Story, cluster: Cluster) -> None:
    story.heading("\nChanging the spec:")
    app = await cluster.client.patch(WebApp, NAME, MergePatch({"spec": CHANGE}), SPACE)
    story.fact("new replicas: {}", app.spec.replicas)
    story.fact("new image: {}", app.spec.image)
    story.fact("new port: {}", app.spec.port)


async def _reconcile(story: Story, cluster: Cluster, manager: Manager, reconciler: _Told) -> None:
    story.heading("\nReconciling:")
    with listening(story, "webapp", PHRASES):
        await cluster.step("webapp", manager=manager)
    again, after = _requeue(reconciler.result)
    story.fact("result: Requeue={}, RequeueAfter={}", again, after)


async def _compare(story: Story, cluster: Cluster) -> None:
    story.heading("\nAfter the sync:")
    app, deployment, service = await _look(cluster)
    pairs: list[tuple[str, Any, Any]] = [
        ("ObservedGeneration: {} (should be {})", app.status.observed_generation, 2),
        ("Deployment replicas: {} (should be {})", deployment.spec.replicas, CHANGE["replicas"]),
        ("Deployment image: {} (should be {})", _image(deployment), CHANGE["image"]),
        ("Service port: {} (should be {})", service.spec.ports[0].port, CHANGE["port"]),
    ]
    for text, actual, wanted in pairs:
        story.fact(text, actual, wanted)
    same = all(actual == wanted for _, actual, wanted in pairs)
    story.verdict(same, "all resources are synced", "the resources are not synced")


async def _reconcile_again(story: Story, cluster: Cluster, manager: Manager, reconciler: _Told) -> None:
    story.heading("Reconciling again (the spec has not changed):")
    with listening(story, "webapp", PHRASES):
        done = await cluster.step("webapp", manager=manager)
    story.fact("the sync is skipped, health is checked")
    story.fact("RequeueAfter: {}", _requeue(reconciler.result)[1])
    # Its status may be written, as replicas become ready meanwhile; the two objects are not.
    story.fine = story.fine and done is not None and all(call.resource == WebApp.resource for call in done.writes)


async def _look(cluster: Cluster) -> tuple[WebApp, Deployment, Service]:
    client = cluster.client
    return (
        await client.get(WebApp, NAME, SPACE),
        await client.get(Deployment, NAME, SPACE),
        await client.get(Service, NAME, SPACE),
    )


def _image(deployment: Deployment) -> str:
    return deployment.spec.template.spec.containers[0].image or ""


def _requeue(result: Result | None) -> tuple[str, str]:
    """As Go prints them. A result that comes back after a while comes back."""
    after = result.requeue_after if result else 0.0
    again = result is not None and (result.requeue or after > 0)
    return str(again).lower(), f"{after:g}s"
