"""Pod Security: a namespace that enforces "restricted" takes the pods, and what ran before is not restarted."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.operators.nacos import names
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, SPACE, STANDALONE, World, a_simulated_world, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-40")]


async def enforce_restricted(world: World) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await world.client.patch(Namespace, SPACE, MergePatch({"metadata": {"labels": labels}}))


@pytest.mark.parametrize(
    "spec",
    [
        STANDALONE,
        EMBEDDED,
        {**EMBEDDED, "securityContext": {"readOnlyRootFilesystem": False}, "podSecurityContext": {"runAsUser": 2000}},
        {**MYSQL, "mysqlInitImage": "mysql:8"},
    ],
    ids=["standalone", "cluster", "own-user", "mysql-job"],
)
async def test_a_restricted_nacos_comes_up_where_that_is_enforced(spec: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await enforce_restricted(world)
        await world.up("nacos", {**spec, "podSecurity": "Restricted"})
        pod, *_ = await world.pods()
        context = pod.spec.security_context
        assert context is not None
        assert context.run_as_user == spec.get("podSecurityContext", {}).get("runAsUser", 1000)
        assert (await world.nacos("nacos")).status.applied.pod_security == "Restricted"


@pytest.mark.parametrize("said", [{}, {"podSecurity": "Baseline"}])
async def test_what_is_not_restricted_is_refused_there(said: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        await enforce_restricted(world)
        await world.create("nacos", {**CLUSTER, **said})
        await world.advance(120.0)
        assert await world.pods() == []
        await world.change("nacos", podSecurity="Restricted")
        await world.until("nacos")


async def standard(world: World) -> str:
    live = await world.client.get(StatefulSet, "nacos", SPACE)
    return live.spec.template.metadata.annotations.get(names.POD_SECURITY, "")


async def test_by_default_servers_run_as_their_image_does() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        pod, *_ = await world.pods()
        assert pod.spec.security_context is None or not pod.spec.security_context.run_as_non_root
        assert await standard(world) == ""


async def test_a_choice_that_is_taken_back_is_gone() -> None:
    """By which a user recovers from an image that fails as another user."""
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "podSecurity": "Restricted"})
        before = await world.uids()
        await world.update("nacos", podSecurity=None)
        assert not set(before.values()) & set((await world.uids()).values())
        pod, *_ = await world.pods()
        assert pod.spec.security_context is None or not pod.spec.security_context.run_as_non_root
        assert await standard(world) == ""
        assert (await world.nacos("nacos")).status.applied.pod_security == ""


async def test_restricted_servers_are_given_their_list_of_members() -> None:
    """The image's entry point cannot write it: the folder belongs to root."""
    async with a_simulated_world() as (world, _), world.operating():
        await world.up("nacos", {**EMBEDDED, "podSecurity": "Restricted"})
        listed = (await world.client.get(ConfigMap, "nacos", SPACE)).data["cluster.conf"].split()
        assert [member.partition(".")[0] for member in listed] == ["nacos-0", "nacos-1", "nacos-2"]
        await world.update("nacos", replicas=4)
        assert len((await world.client.get(ConfigMap, "nacos", SPACE)).data["cluster.conf"].split()) == 4
        pod, *_ = await world.pods()
        (mount,) = [m for m in pod.spec.containers[0].volume_mounts if m.mount_path.endswith("/cluster.conf")]
        assert mount.sub_path == "cluster.conf"
