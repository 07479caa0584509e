"""What must hold on any API server, the embedded one and the real one alike: functions of a client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest

from konverge import Context, Controller, LeaderElection, Manager, ObjectMeta, Reconciler
from konverge.client import Client, Conflict, Invalid, MergePatch, NotFound
from konverge.objects import LabelSelector, Quantity
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentCondition, DeploymentSpec
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    EnvVar,
    Namespace,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from konverge.runtime import NotOwned, Use
from konverge.runtime.apply_set import Child, SetResult


async def eventually(condition: Callable[[], Any], limit: float = 180.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.02)


async def make_namespace(client: Client, name: str) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name=name)))


def deployment(name: str) -> Deployment:
    labels = {"app": name}
    container = Container(
        name="web",
        image="nginx:1.27",
        ports=[ContainerPort(container_port=80), ContainerPort(container_port=53, protocol="UDP")],
        env=[EnvVar(name="A", value="1"), EnvVar(name="B", value="2")],
        args=["--verbose", "--port=80"],
        resources=ResourceRequirements(limits={"cpu": Quantity("1000m"), "memory": Quantity("1024Mi")}),
    )
    return Deployment(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=DeploymentSpec(
            replicas=2,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


def service(name: str) -> Service:
    port = ServicePort(port=80, target_port=8080)
    return Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(selector={"app": name}, ports=[port]))


async def steady_state_writes_nothing(client: Client, namespace: str) -> None:
    """Objects with many fields are applied once. Whatever the server defaults, applying them again makes no request."""
    await make_namespace(client, namespace)
    wrote: list[list[bool]] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        wrote.append([await ctx.apply(deployment(ctx.request.name)), await ctx.apply(service(ctx.request.name))])

    controller = Controller(
        ConfigMap, reconcile, owns=[Deployment, Service], namespaces=(namespace,), label_selector="steady"
    )
    async with Manager(client, name="steady-test").add(controller).running():
        await client.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=namespace, labels={"steady": "1"})))
        await eventually(lambda: len(wrote) == 1)
        for poke in ("1", "2"):
            await client.patch(ConfigMap, "web", MergePatch({"data": {"poke": poke}}), namespace)
            await eventually(lambda: len(wrote) > int(poke))  # noqa: B023 - awaited within the iteration
    assert wrote == [[True, True], [False, False], [False, False]]


async def drift_is_repaired(client: Client, namespace: str) -> None:
    await make_namespace(client, namespace)
    runs: list[str] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        await ctx.apply(deployment(ctx.request.name))
        runs.append(", ".join(str(reason) for reason in ctx.reasons))

    controller = Controller(ConfigMap, reconcile, owns=[Deployment], namespaces=(namespace,), label_selector="drift")
    async with Manager(client, name="drift-test").add(controller).running():
        await client.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=namespace, labels={"drift": "1"})))
        await eventually(lambda: len(runs) == 1)
        patch = MergePatch({"spec": {"replicas": 7}})
        await client.patch(Deployment, "web", patch, namespace)
        await eventually(lambda: len(runs) == 2)
        live = await client.get(Deployment, "web", namespace)
        assert live.spec.replicas == 2
        assert "spec.replicas" in runs[1]
        await client.delete(Deployment, "web", namespace)
        await eventually(lambda: len(runs) == 3)
        await client.get(Deployment, "web", namespace)


async def finalizers_hold_until_the_cleanup_is_done(client: Client, namespace: str) -> None:
    await make_namespace(client, namespace)
    steps: list[str] = []

    class Careful(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            steps.append("reconcile")

        async def cleanup(self, ctx: Context[Secret]) -> None:
            steps.append("cleanup")

    controller = Controller(Secret, Careful(), name="careful", namespaces=(namespace,), label_selector="careful")
    async with Manager(client, name="careful-test").add(controller).running():
        await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace, labels={"careful": "1"})))
        await eventually(lambda: "reconcile" in steps)
        await client.delete(Secret, "s", namespace)
        await eventually(lambda: "cleanup" in steps)
        async with asyncio.timeout(180):
            while True:
                try:
                    await client.get(Secret, "s", namespace)
                except NotFound:
                    break
                await asyncio.sleep(0.02)
    assert steps == ["reconcile", "cleanup"]


async def a_leader_keeps_its_lease(client: Client, namespace: str) -> None:
    await make_namespace(client, namespace)

    async def nothing(ctx: Context[ConfigMap]) -> None:
        """A reconciler that does nothing."""

    election = LeaderElection(name="op", namespace=namespace, identity="me")
    manager = Manager(client, name="leader-test", leader_election=election)
    async with manager.add(Controller(ConfigMap, nothing, namespaces=(namespace,))).running():
        lease = await client.get(Lease, "op", namespace)
        assert lease.spec.holder_identity == "me"
    released = await client.get(Lease, "op", namespace)
    assert not released.spec.holder_identity


async def an_apply_to_a_uid_writes_no_other_object(client: Client, namespace: str) -> None:
    """What `ctx.apply` relies on: an apply with a uid makes no object, and does not take one over either."""
    await make_namespace(client, namespace)

    def config_map(uid: str = "", **data: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace, uid=uid), data=data)

    first = await client.create(config_map(a="1"))
    uid = first.metadata.uid
    await client.apply(config_map(uid, a="2"), field_manager="uids", force=True)
    await client.delete(ConfigMap, "a", namespace)
    with pytest.raises(Conflict, match="no existing object was found"):
        await client.apply(config_map(uid, a="3"), field_manager="uids", force=True)
    second = await client.create(config_map(a="4"))
    with pytest.raises(Invalid) as refused:
        await client.apply(config_map(uid, a="5"), field_manager="uids", force=True)
    assert [cause.field for cause in refused.value.causes] == ["metadata.uid"]
    assert await client.get(ConfigMap, "a", namespace) == second


async def a_replaced_child_is_left_alone(client: Client, namespace: str) -> None:
    """The cache shows a child of ours that a stranger's object has replaced: nothing of it is written."""
    await make_namespace(client, namespace)
    errors: list[str] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if not errors:
            await ctx.apply(secret("1"))
            await client.delete(Secret, "child", namespace)
            await client.create(secret("theirs"))
        try:
            await ctx.apply(secret("2"))
        except (Conflict, NotOwned) as error:
            errors.append(type(error).__name__)
            raise

    def secret(value: str) -> Secret:
        return Secret(metadata=ObjectMeta(name="child", namespace=namespace), string_data={"a": value})

    # Without a cache, so that both are read live; the second one is what the apply would take over.
    controller = Controller(
        ConfigMap, reconcile, uses=[Use(Secret, "apply", "delete")], namespaces=(namespace,), label_selector="replaced"
    )
    async with Manager(client, name="replaced-test").add(controller).running():
        await client.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=namespace, labels={"replaced": "1"})))
        await eventually(lambda: errors)
        live = await client.get(Secret, "child", namespace)
    assert errors == ["NotOwned"]
    assert live.data == {"a": base64.b64encode(b"theirs").decode()}
    assert not live.metadata.owner_references


async def conditions_of_other_writers_stay(client: Client, namespace: str) -> None:
    """Another writer sets a condition after the object was read: the guarded write is a conflict, and merged."""
    await make_namespace(client, namespace)
    saved: list[bool] = []

    async def reconcile(ctx: Context[Deployment]) -> None:
        if not saved:
            theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "m"}
            patch = MergePatch({"status": {"conditions": [theirs]}})
            await client.patch(Deployment, ctx.request.name, patch, namespace, subresource="status")
            ctx.obj.status.conditions.append(DeploymentCondition(type="Ours", status="True"))
            saved.append(await ctx.save_status())

    async with Manager(client, name="status-test").add(Controller(Deployment, reconcile)).running():
        await client.create(deployment("web"), namespace)
        await eventually(lambda: saved)
        live = await client.get(Deployment, "web", namespace)
    assert saved == [True]
    assert sorted(condition.type for condition in live.status.conditions) == ["Ours", "Theirs"]


async def a_set_applies_in_order_shows_differences_and_prunes(client: Client, namespace: str) -> None:
    """Objects with many fields in stages; then a dry run of a smaller set, which is applied at last."""
    await make_namespace(client, namespace)
    results: list[SetResult] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.obj.data.get("step") == "small":
            results.append(await ctx.apply_set([config(namespace, "changed")], dry_run=True))
            results.append(await ctx.apply_set([config(namespace, "changed")]))
            return
        web = deployment("web")
        children = [config(namespace, "same"), service("web"), Child(web, ready=lambda live: live.spec.replicas == 2)]
        results.append(await ctx.apply_set([*children, Child(service("late"), after=[web])]))

    owns = [Deployment, Service, ConfigMap]
    controller = Controller(ConfigMap, reconcile, owns=owns, namespaces=(namespace,), label_selector="set")
    async with Manager(client, name="set-test").add(controller).running():
        await client.create(ConfigMap(metadata=ObjectMeta(name="own", namespace=namespace, labels={"set": "1"})))
        await eventually(lambda: results)
        written = [ref.name for ref in results[0].written]
        await client.patch(ConfigMap, "own", MergePatch({"data": {"step": "same"}}), namespace)
        await eventually(lambda: len(results) == 2)
        await client.patch(ConfigMap, "own", MergePatch({"data": {"step": "small"}}), namespace)
        await eventually(lambda: len(results) >= 4)
        await client.get(Deployment, "web", namespace)  # it waits for the one that came after it
        # what the garbage collector does when an object that is deleted in the foreground has no dependents left
        await client.patch(Service, "late", MergePatch({"metadata": {"finalizers": None}}), namespace)
        await eventually(lambda: results[-1].ready)
    assert written == ["settings", "web", "web", "late"]
    assert results[1].written == ()
    assert "+  k: changed" in results[2].diff
    assert {(ref.kind, ref.name) for ref in results[2].deleted} == {
        ("Deployment", "web"), ("Service", "web"), ("Service", "late"),
    }  # fmt: skip
    left = [item.metadata.name for kind in (Deployment, Service) for item in (await client.list(kind, namespace)).items]
    assert left == []
    assert (await client.get(ConfigMap, "settings", namespace)).data == {"k": "changed"}


def config(namespace: str, value: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace), data={"k": value})


ALL = (
    a_set_applies_in_order_shows_differences_and_prunes,
    conditions_of_other_writers_stay,
    an_apply_to_a_uid_writes_no_other_object,
    a_replaced_child_is_left_alone,
    steady_state_writes_nothing,
    drift_is_repaired,
    finalizers_hold_until_the_cleanup_is_done,
    a_leader_keeps_its_lease,
)
