"""The second half of the contract: subresources, new kinds, messages of refusals, and wrappers in any order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import reduce
from itertools import permutations

import pytest

from konverge.client import (
    BadRequest,
    Client,
    Conflict,
    DryRun,
    FieldOwner,
    Invalid,
    JsonPatch,
    MergePatch,
    Namespaced,
    NotFound,
    Recording,
    StrategicPatch,
    Strict,
    TooManyRequests,
    UnknownKind,
)
from konverge.objects import CustomResource, Model, Scale, crd
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource
from tests.client.contract import CHECKS, check, config_map

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "p"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"


async def _with_a_pod(client: Client, namespace: str) -> Namespaced:
    space = Namespaced(client, namespace)
    await space.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, field_manager="c"
    )
    await space.create(POD)
    return space


@check
async def subresources_of_a_pod(client: Client, namespace: str) -> None:
    space = await _with_a_pod(client, namespace)
    wanted = StrategicPatch({"spec": {"ephemeralContainers": [{"name": "debug", "image": "i"}]}})
    changed = await space.patch_sub(Pod, "p", "ephemeralcontainers", wanted)
    assert [container["name"] for container in changed["spec"]["ephemeralContainers"]] == ["debug"]
    await space.bind_pod("p", "some-node")
    with pytest.raises(Conflict, match="already assigned"):
        await space.bind_pod("p", "other-node")
    await space.patch(Pod, "p", MergePatch({"status": {"phase": "Running"}}), subresource="status")
    assert (await space.get_sub(Pod, "p", "status"))["status"]["phase"] == "Running"
    with pytest.raises(BadRequest, match="container zz is not valid"):
        await space.log("p", container="zz")


@check
async def evictions(client: Client, namespace: str) -> None:
    space = await _with_a_pod(client, namespace)
    await DryRun(space).evict("p")
    with pytest.raises(Conflict, match="UID in the precondition"):
        await space.evict("p", uid=UNKNOWN_UID)
    await space.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
        }
    )
    await space.patch(Pod, "p", MergePatch({"status": READY}), subresource="status")
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    await space.patch("pdb", "b", MergePatch({"status": {**status, "expectedPods": 1}}), subresource="status")
    with pytest.raises(TooManyRequests, match="kubectl get pdb"):
        await space.evict("p")
    await space.delete("pdb", "b")
    await space.evict("p", grace_period=0)


@check
async def tokens(client: Client, namespace: str) -> None:
    space = await _with_a_pod(client, namespace)
    issued = await space.request_token("default", audiences=["shop"], seconds=600)
    assert issued.token.count(".") == 2
    with pytest.raises(Invalid) as refused:
        await space.request_token("default", seconds=5)
    assert [cause.field for cause in refused.value.causes] == ["spec.expirationSeconds"]


@check
async def texts_of_refusals_say_what_to_do(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create(config_map("a", k="v"))
    test = JsonPatch([{"op": "test", "path": "/data/k", "value": "other"}])
    with pytest.raises(Invalid, match="a `test` did not hold"):
        await space.patch(ConfigMap, "a", test)
    with pytest.raises(BadRequest, match="not one that was read"):
        await space.apply(await space.get("cm", "a"), field_manager="me")
    with pytest.raises(Conflict, match="Read the object again"):
        await space.patch(ConfigMap, "a", MergePatch({"metadata": {"resourceVersion": "1"}, "data": {"k": "w"}}))
    with pytest.raises(NotFound, match="kubectl api-resources"):
        await client.get(Resource("no.example.com", "v1", "X", "xs"), "a", namespace=namespace)
    with pytest.raises(BadRequest, match="is not a known field selector"):
        await space.list(ConfigMap, field_selector="data.k=v")
    with pytest.raises(Conflict, match="UID in the precondition"):
        await space.delete(ConfigMap, "a", uid=UNKNOWN_UID)


class _GadgetSpec(Model):
    replicas: int = 1


class _GadgetStatus(Model):
    replicas: int = 0


class _Gadget(
    CustomResource[_GadgetSpec, _GadgetStatus],
    group="contract.example.com",
    version="v1",
    kind="Gadget",
    short_names=["gdg"],
    scale=Scale(),
): ...


@check
async def a_new_kind_appears(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    with pytest.raises(UnknownKind):
        await space.get("gdg", "a")
    definition = await client.create(crd(_Gadget))
    try:
        async with aclosing(
            client.watch(type(definition), field_selector="metadata.name=gadgets.contract.example.com")
        ) as seen:
            async for event in seen:
                if any(c.type == "Established" and c.status == "True" for c in event.object.status.conditions):
                    break
        while not await _is_served(space, "gdg"):  # by a real server a moment later
            continue
        made = _Gadget(metadata=ObjectMeta(name="a"), spec=_GadgetSpec(replicas=2))
        await space.create(made)
        assert (await space.get("gdg", "a"))["spec"] == {"replicas": 2}
        await space.scale("gdg", "a", 5)
        made.status.replicas = 4
        stored = await space.apply(made, subresource="status", field_manager="me")
        assert (stored.spec.replicas, stored.status.replicas) == (5, 4)
        assert len((await space.delete_collection(_Gadget)).items) == 1
    finally:
        await client.delete(type(definition), "gadgets.contract.example.com")


async def _is_served(client: Client, kind: str) -> bool:
    try:
        await client.list(kind)
    except (UnknownKind, NotFound, TooManyRequests):
        return False
    return True


Wrap = Callable[[Client], Client]


def every_order_of_wrappers(namespace: str) -> list[Wrap]:
    """Namespaced, dry run, field owner, strict and recording around a client, in every order."""
    wrappers: list[Wrap] = [
        lambda client: Namespaced(client, namespace),
        DryRun,
        lambda client: FieldOwner(client, "me"),
        Strict,
        Recording,
    ]
    return [
        lambda client, order=order: reduce(lambda inner, wrap: wrap(inner), order, client)
        for order in permutations(wrappers)
    ]


async def writes_nothing(wrapped: Client, plain: Client) -> None:
    stored = await wrapped.apply(config_map("dry", k="v"))
    assert [entry.manager for entry in stored.metadata.managed_fields] == ["me"]
    with pytest.raises(BadRequest, match="unknown field"):
        await wrapped.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dry"}, "dat": {}})
    with pytest.raises(NotFound):
        await plain.get(ConfigMap, "dry")


ALL = CHECKS
"""Every promise, with those of `contract`."""
