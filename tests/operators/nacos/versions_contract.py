"""What users see of a Nacos in its two versions; the same on the embedded and on the real API server.

No Nacos operator runs here: the status is written as it writes it, so that servers need not come up.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from konverge.client import Client, Conflict, InternalError, Invalid, JsonPatch, MergePatch, NotFound, TooManyRequests
from konverge.objects import crd_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.v1beta1 import VERSIONS, NacosV1Beta1
from konverge.runtime import Manager
from konverge.runtime.webhooks import migrate_stored_versions
from konverge.runtime.webhooks.conversion import Conversion
from konverge.testing import eventually

SPACE = "default"
PATIENCE = 180.0
"""Seconds for a real server to take something up, on a machine that is busy with other things."""
DEFINITION = Nacos.resource.group_resource
ALPHA, BETA = Nacos.resource, NacosV1Beta1.resource
KEPT = "nacos.io/preserved-v1alpha1"
SINCE = "2026-01-02T03:04:05Z"

Obj = dict[str, Any]


def converter() -> Manager:
    """Converts, and nothing else."""
    return Manager(name="nacos-operator").add_webhook(Conversion(*VERSIONS))


def alpha(name: str, **spec: Any) -> Obj:
    return {"apiVersion": ALPHA.api_version, "kind": "Nacos", "metadata": _meta(name), "spec": spec}


def beta(name: str, **spec: Any) -> Obj:
    return {**alpha(name, **spec), "apiVersion": BETA.api_version}


def _meta(name: str) -> Obj:
    return {"name": name, "namespace": SPACE}


def condition(type: str, status: str, generation: int = 1) -> Obj:
    facts = {"lastTransitionTime": SINCE, "observedGeneration": generation, "reason": "Running", "message": "3 of 3"}
    return {"type": type, "status": status, **facts}


def written_status(generation: int = 1, ready: str = "True") -> Obj:
    """As the operator writes it, in v1alpha1."""
    kube = [condition("Ready", ready, generation), condition("Stalled", "False", generation)]
    servers = [
        {"type": role, "status": "true", "podName": f"n-{n}", "instance": f"10.0.0.{n}", "hostIP": "", "nodeName": "a"}
        for n, role in enumerate(("leader", "follower", "follower"))
    ]
    event = [{"status": True, "code": 200, "firstAppearTime": SINCE, "lastTransitionTime": SINCE}]
    facts = {"phase": "Running", "version": "2.4.3", "observedGeneration": generation, "leader": "n-0"}
    return {**facts, "kubeConditions": kube, "conditions": [*servers, *kube], "event": event}


async def write_status(client: Client, name: str, status: Obj) -> None:
    await client.patch_sub(ALPHA, name, "status", MergePatch({"status": status}), SPACE)


async def define(client: Client) -> None:
    """What `konverge crd nacos | kubectl apply --server-side` does, over another definition too."""
    await client.apply(crd_dict(*VERSIONS), field_manager="konverge", force=True)


async def served(client: Client, resource: Any = ALPHA) -> None:
    async def answers() -> bool:
        try:
            await client.list(resource, SPACE)
        except NotFound:
            return False
        except (InternalError, TooManyRequests):  # it is there, and nobody converts its objects
            return True
        return True

    await eventually(answers, timeout=PATIENCE)


async def converted(client: Client) -> None:
    """Wait until the server calls the converter: it learns of it a moment after the definition says so."""

    async def answers() -> bool:
        try:
            for make in (alpha, beta):
                await client.create(make("probe"), dry_run=True)
        except (NotFound, InternalError):
            return False
        return True

    await eventually(answers, timeout=PATIENCE)


# ------------------------------------------------------------------ one object, two versions


async def written_and_read_in_both(client: Client) -> None:
    certification = {"enabled": True, "token_expire_seconds": "3600", "cache_enabled": True}
    await client.create(alpha("n", type="cluster", replicas=3, function_mode="naming", certification=certification))
    await write_status(client, "n", written_status())
    old, new = await client.get(ALPHA, "n", SPACE), await client.get(BETA, "n", SPACE)
    assert (new["apiVersion"], new["metadata"]["uid"]) == ("nacos.io/v1beta1", old["metadata"]["uid"])
    assert new["metadata"].get("annotations", {}) == {}, "what the operator writes has its place in v1beta1"
    assert new["spec"]["functionMode"] == "naming"
    changed = {"tokenExpireSeconds": 3600, "cacheEnabled": True}
    assert changed.items() <= new["spec"]["certification"].items()
    assert "function_mode" not in new["spec"]
    assert new["status"]["conditions"] == old["status"]["kubeConditions"]
    servers = [(server["name"], server["role"], server["ready"]) for server in new["status"]["servers"]]
    assert servers == [("n-0", "leader", True), ("n-1", "follower", True), ("n-2", "follower", True)]
    assert new["status"]["events"] == old["status"]["event"]
    assert {"kubeConditions", "event"}.isdisjoint(new["status"])
    assert new["status"]["phase"] == old["status"]["phase"] == "Running"


async def patched_in_both(client: Client) -> None:
    """After `written_and_read_in_both`: changes of either version are in both, and nothing else is changed."""
    before = await client.get(ALPHA, "n", SPACE)
    await client.patch(BETA, "n", MergePatch({"spec": {"certification": {"tokenExpireSeconds": 60}}}), SPACE)
    old = await client.get(ALPHA, "n", SPACE)
    assert old["spec"]["certification"]["token_expire_seconds"] == "60"
    assert old["metadata"]["generation"] == before["metadata"]["generation"] + 1
    before["spec"]["certification"]["token_expire_seconds"] = "60"
    assert (old["spec"], old["status"]) == (before["spec"], before["status"])
    labelled = await client.patch(BETA, "n", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    assert labelled["metadata"]["generation"] == old["metadata"]["generation"], "a label is no change of the spec"
    same = await client.patch(BETA, "n", MergePatch({"spec": {"functionMode": "naming"}}), SPACE)
    assert same["metadata"]["resourceVersion"] == labelled["metadata"]["resourceVersion"], "nothing was written"
    ready = condition("Ready", "False", 2)
    await client.patch_sub(BETA, "n", "status", MergePatch({"status": {"conditions": [ready]}}), SPACE)
    old = await client.get(ALPHA, "n", SPACE)
    assert old["status"]["kubeConditions"] == [ready]
    assert [entry.get("podName") for entry in old["status"]["conditions"]] == ["n-0", "n-1", "n-2", None]
    scale = MergePatch({"spec": {"replicas": 5}})
    await client.patch_sub(BETA, "n", "scale", scale, SPACE)
    assert (await client.get(ALPHA, "n", SPACE))["spec"]["replicas"] == 5


async def two_writers_in_different_versions(client: Client) -> None:
    """The later of two writes that began from the same state is refused, whichever versions they are in."""
    await client.create(beta("both"))
    first, second = await client.get(ALPHA, "both", SPACE), await client.get(BETA, "both", SPACE)
    first["spec"]["clusterDomain"], second["spec"]["functionMode"] = "a.local", "config"
    await client.replace(first)
    with pytest.raises(Conflict):
        await client.replace(second)
    second = await client.get(BETA, "both", SPACE)
    second["spec"]["functionMode"] = "config"
    await client.replace(second)
    now = (await client.get(ALPHA, "both", SPACE))["spec"]
    assert (now["clusterDomain"], now["function_mode"]) == ("a.local", "config")


async def applied_in_both(client: Client) -> None:
    """Server-side apply notes owners in the version that they used; one's fields are not taken by the other."""
    await client.apply(alpha("ssa", function_mode="naming"), field_manager="one", force=True)
    await client.apply(beta("ssa", certification={"tokenExpireSeconds": 60}), field_manager="two", force=True)
    seen = await client.get(BETA, "ssa", SPACE)
    assert (seen["spec"]["functionMode"], seen["spec"]["certification"]["tokenExpireSeconds"]) == ("naming", 60)
    owners = {entry["manager"]: entry["apiVersion"] for entry in seen["metadata"]["managedFields"]}
    assert owners == {"one": ALPHA.api_version, "two": BETA.api_version}
    again = await client.apply(alpha("ssa", function_mode="naming"), field_manager="one")
    assert again["metadata"]["resourceVersion"] == seen["metadata"]["resourceVersion"], "the same again is no write"
    await client.apply(beta("ssa", certification={"tokenExpireSeconds": 90}), field_manager="two")
    old = await client.get(ALPHA, "ssa", SPACE)
    assert (old["spec"]["certification"]["token_expire_seconds"], old["spec"]["function_mode"]) == ("90", "naming")


async def conflicts_across_versions(client: Client) -> None:
    """After `applied_in_both`: a field has its owner by every name."""
    with pytest.raises(Conflict, match="one"):
        await client.apply(beta("ssa", functionMode="config"), field_manager="two")


async def listed_and_watched_in_both(client: Client) -> None:
    before = await client.list(BETA, SPACE)
    for number in range(3):
        await client.create(alpha(f"many-{number}", function_mode="config"))
    for resource, field in ((ALPHA, "function_mode"), (BETA, "functionMode")):
        modes = {obj["metadata"]["name"]: obj["spec"].get(field) for obj in await client.list(resource, SPACE)}
        assert {modes[f"many-{number}"] for number in range(3)} == {"config"}
        seen = await _watched(client, resource, before.metadata.resource_version, 3)
        assert [(obj["apiVersion"], obj["spec"][field]) for obj in seen] == [(resource.api_version, "config")] * 3


async def _watched(client: Client, resource: Any, since: str, count: int) -> list[Obj]:
    seen: list[Obj] = []
    async with asyncio.timeout(PATIENCE), aclosing(client.watch(resource, SPACE, resource_version=since)) as events:
        async for event in events:
            if event.type == "ADDED":
                seen.append(event.object)
            if len(seen) == count:
                break
    return seen


async def refused_in_both(client: Client) -> None:
    """The rules are the same, with the same paths."""
    for make in (alpha, beta):
        with pytest.raises(Invalid, match=r"spec\.replicas.*at least 3 replicas"):
            await client.create(make("small", type="cluster", replicas=2))
        with pytest.raises(Invalid, match="the name becomes that of Services"):
            await client.create(make("1small"))
    with pytest.raises(Invalid, match="tokenExpireSeconds"):
        await client.create(beta("never", certification={"tokenExpireSeconds": 0}))


# ------------------------------------------------------------------ objects from before, and the way back


async def before_there_were_versions(client: Client) -> None:
    """An object of the earlier release, and one that its definition let in and this one refuses."""
    loose = crd_dict(Nacos)
    (version,) = loose["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["type"].pop("enum")
    properties["spec"].pop("x-kubernetes-validations")
    await client.apply(loose, field_manager="konverge", force=True)
    await served(client)
    await client.create(alpha("first", certification={"token_expire_seconds": "007"}))
    await client.create(alpha("odd", type="both"))
    status = written_status()
    status["conditions"] = status["conditions"][:3]  # the first release did not repeat the conditions
    await write_status(client, "first", status)


async def after_there_are_versions(client: Client) -> None:
    names = {obj["metadata"]["name"]: obj for obj in await client.list(BETA, SPACE)}
    assert names["odd"]["spec"]["type"] == "both", "an invalid object neither fails the list nor is it hidden"
    first = names["first"]
    assert first["spec"]["certification"]["tokenExpireSeconds"] == 7
    assert [entry["type"] for entry in first["status"]["conditions"]] == ["Ready", "Stalled"]
    assert KEPT in first["metadata"]["annotations"]
    before = await client.get(ALPHA, "first", SPACE)
    assert KEPT not in before["metadata"].get("annotations", {})
    await client.patch(BETA, "first", MergePatch({"spec": {"functionMode": "naming"}}), SPACE)
    after = await client.get(ALPHA, "first", SPACE)
    before["spec"]["function_mode"] = "naming"
    assert (after["spec"], after["status"]) == (before["spec"], before["status"]), "007 is still 007"
    assert KEPT not in after["metadata"].get("annotations", {}), "it is no annotation of what is stored"
    with pytest.raises(Invalid, match=r"spec\.type"):
        await client.patch(BETA, "odd", MergePatch({"spec": {"type": "neither"}}), SPACE)
    definition = await client.get(CustomResourceDefinition, DEFINITION)
    assert definition.status.stored_versions == ["v1alpha1"]
    assert await migrate_stored_versions(client, DEFINITION) == 0, "there is nothing to migrate"


async def back_to_the_earlier_release(client: Client) -> None:
    """Its definition over ours, with objects of v1beta1: it reads all of them, and needs no conversion."""
    await client.create(beta("late", functionMode="config", certification={"tokenExpireSeconds": 99}))
    ours = await client.get(CustomResourceDefinition.resource, DEFINITION)
    await client.replace({**ours, "spec": crd_dict(Nacos)["spec"]})

    async def gone() -> bool:
        try:
            await client.list(BETA, SPACE)
        except NotFound:
            return True
        return False

    await eventually(gone, timeout=PATIENCE)
    late = await client.get(ALPHA, "late", SPACE)
    assert (late["spec"]["function_mode"], late["spec"]["certification"]["token_expire_seconds"]) == ("config", "99")


# ------------------------------------------------------------------ without the conversion


def _strategy(name: str) -> JsonPatch:
    return JsonPatch([{"op": "add", "path": "/spec/conversion", "value": {"strategy": name}}])


async def without_the_operator(client: Client) -> None:
    """v1beta1 fails with the reason; v1alpha1 works, and nothing is lost."""
    with pytest.raises(InternalError, match=r"conversion webhook for nacos\.io/v1.*failed"):
        await client.create(beta("away"))
    await client.create(alpha("alone", function_mode="naming"))
    await write_status(client, "alone", written_status())
    with pytest.raises(InternalError, match=r"conversion webhook for nacos\.io/v1alpha1, Kind=Nacos failed"):
        await client.get(BETA, "alone", SPACE)


async def with_the_operator_again(client: Client) -> None:
    new = await client.get(BETA, "alone", SPACE)
    assert new["spec"]["functionMode"] == "naming"
    assert len(new["status"]["servers"]) == 3


async def the_strategy_none_loses_data(client: Client) -> None:
    """Why there has to be a webhook: with None the server changes the apiVersion and drops what it does not know."""
    for name in ("plain", "spoilt"):
        await client.create(alpha(name, function_mode="naming", certification={"token_expire_seconds": "60"}))
    await write_status(client, "plain", written_status())
    definition = await client.get(CustomResourceDefinition.resource, DEFINITION)
    await client.patch(CustomResourceDefinition, DEFINITION, _strategy("None"))

    async def unconverted() -> bool:
        return "servers" not in (await client.get(BETA, "plain", SPACE))["status"]

    await eventually(unconverted, timeout=PATIENCE)
    wrong = await client.get(BETA, "plain", SPACE)
    assert "functionMode" not in wrong["spec"]
    assert "tokenExpireSeconds" not in wrong["spec"]["certification"]
    types = [entry["type"] for entry in wrong["status"]["conditions"]]
    assert types == ["leader", "follower", "follower", "Ready", "Stalled"], "servers as conditions, two of one type"
    await client.patch(BETA, "spoilt", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    spoilt = await client.get(ALPHA, "spoilt", SPACE)
    assert "function_mode" not in spoilt["spec"], "a label was written, and the spec is another one"
    put_back = JsonPatch([{"op": "add", "path": "/spec/conversion", "value": definition["spec"]["conversion"]}])
    await client.patch(CustomResourceDefinition, DEFINITION, put_back)

    async def is_converted() -> bool:
        return "servers" in (await client.get(BETA, "plain", SPACE))["status"]

    await eventually(is_converted, timeout=PATIENCE)
    assert (await client.get(BETA, "plain", SPACE))["spec"]["functionMode"] == "naming", "reading lost nothing"
