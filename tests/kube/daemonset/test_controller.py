"""DaemonSets: one pod per node that fits, taints, rolling updates with and without surge, failed pods, revisions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.daemonset import controller as daemonset
from konverge.kube.daemonset.node_fit import bound_to, should_run, target_of, tolerations
from konverge.kube.daemonset.plan import bounds, look_at, manage, roll
from konverge.kube.placement import tolerates
from konverge.objects.kinds.apps_v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from konverge.objects.kinds.core_v1 import Node, Pod, PodCondition, PodSpec, PodStatus, Taint, Toleration
from tests.kube.conftest import Run, pods
from tests.kube.kubelet import Kubelet
from tests.kube.objects import add_node, node, set_image
from tests.kube.objects import daemonset as agent_daemonset

pytestmark = pytest.mark.spec("R-35")


virtual = pytest.mark.virtual


def strategy(**fields: Any) -> DaemonSetUpdateStrategy:
    return DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=RollingUpdateDaemonSet(**fields))


async def on_nodes(client: Client) -> dict[str, list[str]]:
    """node -> images"""
    images: dict[str, list[str]] = {}
    for pod in await pods(client, "app=web"):
        images.setdefault(target_of(pod) or "", []).append(pod.spec.containers[0].image or "")
    return images


async def numbers(client: Client) -> tuple[int, ...]:
    status = (await client.get(DaemonSet, "agent", "default")).status
    return (
        status.desired_number_scheduled, status.current_number_scheduled, status.updated_number_scheduled or 0,
        status.number_available or 0, status.number_unavailable or 0, status.number_misscheduled,
    )  # fmt: skip


@virtual
async def test_every_node_that_fits_has_one_daemon(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        await add_node(client, "a", role="worker")
        await add_node(client, "b", role="worker")
        await add_node(client, "c")
        await client.create(agent_daemonset(spec={"nodeSelector": {"role": "worker"}}))
        await asyncio.sleep(5)
        assert await on_nodes(client) == {"a": ["app:1"], "b": ["app:1"]}
        assert await numbers(client) == (2, 2, 2, 2, 0, 0)
        await add_node(client, "d", role="worker")
        await client.patch(Node, "a", MergePatch({"metadata": {"labels": {"role": None}}}))
        await asyncio.sleep(5)
        assert set(await on_nodes(client)) == {"b", "d"}
        (revision,) = (await client.list(ControllerRevision, "default")).items
        pod = (await pods(client))[0]
        digest = revision.metadata.labels["controller-revision-hash"]
        assert pod.metadata.labels == {"app": "web", "controller-revision-hash": digest, "pod-template-generation": "1"}
        assert revision.metadata.name == f"agent-{digest}"
        assert pod.metadata.generate_name == "agent-"


@virtual
async def test_taints_keep_daemons_away_and_evict_them(client: Client, run: Run) -> None:
    keep_out = {"spec": {"taints": [{"key": "only", "value": "x", "effect": "NoSchedule"}]}}
    async with run(daemonset, Kubelet()):
        for name in ("a", "b"):
            await add_node(client, name)
        await client.patch(Node, "b", MergePatch(keep_out))
        await client.create(agent_daemonset())
        await asyncio.sleep(5)
        assert set(await on_nodes(client)) == {"a"}
        await client.patch(Node, "a", MergePatch(keep_out))
        await asyncio.sleep(5)
        assert set(await on_nodes(client)) == {
            "a"
        }  # a running pod may stay, and as upstream the counts are not updated for it
        await client.patch(DaemonSet, "agent", MergePatch({"metadata": {"annotations": {"look": "again"}}}), "default")
        await asyncio.sleep(5)
        assert await numbers(client) == (0, 0, 0, 0, 0, 1)
        keep_out["spec"]["taints"][0]["effect"] = "NoExecute"
        await client.patch(Node, "a", MergePatch(keep_out))
        await asyncio.sleep(5)
        assert await on_nodes(client) == {}
        pressure = {"spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}}
        await client.patch(Node, "a", MergePatch(pressure))
        await asyncio.sleep(5)
        assert set(await on_nodes(client)) == {"a"}


@virtual
@pytest.mark.parametrize(("fields", "most"), [({"max_unavailable": 1}, 3), ({"max_surge": 1, "max_unavailable": 0}, 4)])
async def test_a_new_template_rolls_over_the_nodes(client: Client, run: Run, fields: dict[str, Any], most: int) -> None:
    kubelet = Kubelet()
    seen: list[tuple[int, int]] = []
    async with run(daemonset, kubelet):
        for name in ("a", "b", "c"):
            await add_node(client, name)
        await client.create(agent_daemonset(update_strategy=strategy(**fields)))
        await asyncio.sleep(5)
        await set_image(client, DaemonSet, "agent", "app:2")
        for _ in range(60):
            await asyncio.sleep(0.05)
            staying = [pod for pod in await pods(client) if pod.metadata.deletion_timestamp is None]
            ready = sum(any(c.type == "Ready" and c.status == "True" for c in p.status.conditions) for p in staying)
            seen.append((ready, len(staying)))
        await asyncio.sleep(5)
        assert await on_nodes(client) == {"a": ["app:2"], "b": ["app:2"], "c": ["app:2"]}
        assert await numbers(client) == (3, 3, 3, 3, 0, 0)
        assert min(ready for ready, _ in seen) >= 3 - fields["max_unavailable"]
        assert max(total for _, total in seen) == most
        await set_image(client, DaemonSet, "agent", "app:1")
        await asyncio.sleep(10)
        revisions = (await client.list(ControllerRevision, "default")).items
        assert sorted(r.revision or 0 for r in revisions) == [2, 3]


@virtual
async def test_a_rollout_of_a_broken_template_stops_after_the_first_node(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        for name in ("a", "b", "c"):
            await add_node(client, name)
        await client.create(agent_daemonset())
        await asyncio.sleep(5)
        await set_image(client, DaemonSet, "agent", "broken")
        await asyncio.sleep(20)
        images = [image for there in (await on_nodes(client)).values() for image in there]
        assert sorted(images) == ["app:1", "app:1", "broken"]
        assert await numbers(client) == (3, 3, 1, 2, 1, 0)


@virtual
async def test_the_strategy_on_delete_waits_for_the_user(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        await add_node(client, "a")
        await client.create(agent_daemonset(update_strategy=DaemonSetUpdateStrategy(type="OnDelete")))
        await asyncio.sleep(5)
        await set_image(client, DaemonSet, "agent", "app:2")
        await asyncio.sleep(5)
        assert await on_nodes(client) == {"a": ["app:1"]}
        (pod,) = await pods(client)
        await client.delete(Pod, pod.metadata.name, "default")
        await asyncio.sleep(5)
        assert await on_nodes(client) == {"a": ["app:2"]}


@virtual
async def test_failed_daemons_are_replaced_with_growing_delays(client: Client, run: Run) -> None:
    kubelet = Kubelet(lambda pod: "Failed")
    async with run(daemonset, kubelet):
        await add_node(client, "a")
        await client.create(agent_daemonset())
        await asyncio.sleep(60)
        assert 4 <= sum(line.startswith("failed") for line in kubelet.log) <= 8  # 1, 2, 4, … seconds
        kubelet.says = lambda pod: "Ready"
        await asyncio.sleep(120)
        assert await numbers(client) == (1, 1, 1, 1, 0, 0)


@virtual
async def test_the_history_of_revisions_is_limited(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        await add_node(client, "a")
        await client.create(agent_daemonset(revision_history_limit=1))
        for number in range(2, 6):
            await asyncio.sleep(10)
            await set_image(client, DaemonSet, "agent", f"app:{number}")
        await asyncio.sleep(10)
        revisions = (await client.list(ControllerRevision, "default")).items
        assert sorted(r.revision or 0 for r in revisions) == [4, 5]


def test_tolerations_are_added_once_and_a_pod_is_bound_to_its_node() -> None:
    own = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute", toleration_seconds=5)
    spec = PodSpec(containers=[], tolerations=[own], host_network=True)
    made = tolerations(spec)
    assert len(made) == 7
    assert made[0].toleration_seconds is None
    assert tolerates(Toleration(operator="Exists"), Taint(key="any", effect="NoExecute"))
    assert not tolerates(Toleration(key="a", value="x"), Taint(key="a", value="y", effect="NoExecute"))
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[], affinity=bound_to(None, "n7")))
    assert target_of(pod) == "n7"
    elsewhere = agent_daemonset(spec={"nodeName": "other"})
    assert should_run(elsewhere, node("n7")) == (False, False)


states = st.sampled_from(["none", "pending", "ready", "going"])


situations = st.lists(st.tuples(states, states), min_size=1, max_size=6)


def made(name: str, where: str, state: str, digest: str) -> Pod:
    condition = PodCondition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            labels={"controller-revision-hash": digest},
            deletion_timestamp="2026-01-01T00:00:00Z" if state == "going" else None,
        ),
        spec=PodSpec(containers=[], node_name=where),
        status=PodStatus(phase="Running", conditions=[condition] if state != "pending" else []),
    )


@given(situations, st.sampled_from([0, 1, 2, "50%"]), st.sampled_from([0, 1, "50%"]))
def test_no_step_of_a_plan_breaks_availability_or_surge(
    situation: list[tuple[str, str]], unavailable: Any, surge: Any
) -> None:
    daemonset_ = agent_daemonset(update_strategy=strategy(max_unavailable=unavailable, max_surge=surge))
    nodes = [node(f"n{number}") for number in range(len(situation))]
    if not surge:  # without surge a node has one pod of the set
        situation = [(old, "none" if old != "none" else new) for old, new in situation]
    pods_ = [
        made(f"{digest}-{number}", f"n{number}", state, digest)
        for number, both in enumerate(situation)
        for digest, state in zip(("old", "new"), both, strict=True)
        if state != "none"
    ]
    view = look_at(daemonset_, nodes, pods_, "new")
    steps = manage(view, lambda node: True) or roll(view)
    most_surge, most_unavailable = bounds(daemonset_, len(nodes))
    assert all(pod.metadata.deletion_timestamp is None for pod in steps.delete)
    assert len(set(steps.create)) == len(steps.create)

    def served(gone: set[str]) -> int:
        staying = [p for p in pods_ if p.metadata.deletion_timestamp is None and p.metadata.uid not in gone]
        return len({target_of(p) for p in staying if view.available(p)})

    before, after = served(set()), served({pod.metadata.uid for pod in steps.delete})
    assert after >= min(before, len(nodes) - most_unavailable)
    for where in steps.create:
        staying = [p for p in view.pods.get(where, []) if p.metadata.deletion_timestamp is None]
        assert len(staying) <= (1 if most_surge else 0)
