"""DaemonSets: counts and events, the back-off of failed pods, kept revisions, and which nodes concern them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.client.call import Call
from konverge.kube.daemonset import controller as daemonset
from konverge.kube.daemonset.controller import FailedPodsBackoff
from konverge.kube.daemonset.node_fit import target_of
from konverge.objects.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetUpdateStrategy
from konverge.objects.kinds.core_v1 import Event, Node, NodeStatus, Pod, PodSpec, Taint
from konverge.runtime.owners import controller_reference
from konverge.wire.message import Response
from tests.kube.conftest import Run, pods, running
from tests.kube.interposed import Interposed, refusing
from tests.kube.kubelet import Kubelet
from tests.kube.objects import add_node, node, set_image
from tests.kube.objects import daemonset as agent_daemonset
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-35")]


async def status_of(client: Client) -> dict[str, Any]:
    """What is not zero, without the generation and the conditions."""
    live = await client.get("daemonsets.apps", "agent", "default")
    return {name: value for name, value in live["status"].items() if value and name != "observedGeneration"}


async def test_the_counts_follow_the_age_of_ready_pods(client: Client, run: Run) -> None:
    for name in ("a", "b"):
        await add_node(client, name)
    await add_node(client, "c", role="other")
    async with run(daemonset, Kubelet(lambda pod: "Ready" if pod.spec.node_name != "b" else "Running")):
        await client.create(agent_daemonset(min_ready_seconds=30))
        await asyncio.sleep(10)
        ready = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 2}
        assert await status_of(client) == {**ready, "numberUnavailable": 3, "updatedNumberScheduled": 3}
        await asyncio.sleep(30)
        assert await status_of(client) == {
            **ready, "numberAvailable": 2, "numberUnavailable": 1, "updatedNumberScheduled": 3,
        }  # fmt: skip
        taints = {"spec": {"taints": [{"key": "only", "effect": "NoSchedule"}]}}
        await client.patch(Node, "c", MergePatch(taints))
        minimum = MergePatch({"spec": {"minReadySeconds": 0, "updateStrategy": {"type": "OnDelete"}}})
        await client.patch(DaemonSet, "agent", minimum, "default")
        await set_image(client, DaemonSet, "agent", "app:2")
        await asyncio.sleep(5)
        assert await status_of(client) == {
            "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 1, "numberAvailable": 1,
            "numberUnavailable": 1, "numberMisscheduled": 1,
        }  # fmt: skip
        live = await client.get(DaemonSet, "agent", "default")
        assert live.status.observed_generation == live.metadata.generation


async def test_pods_that_ended_are_reported_and_replaced(client: Client, run: Run) -> None:
    kubelet = Kubelet(lambda pod: "Failed" if target_of(pod) == "a" else "Succeeded")
    async with run(daemonset, kubelet):
        for name in ("a", "b"):
            await add_node(client, name)
        await client.create(agent_daemonset())
        await asyncio.sleep(2)
        kubelet.says = lambda pod: "Ready"
        await asyncio.sleep(10)
        assert len(await pods(client)) == 2
    events = [event for event in (await client.list(Event, "default")).items if "DaemonPod" in (event.reason or "")]
    seen = {(event.type, event.reason, event.source.component, event.involved_object.name) for event in events}
    assert seen == {
        ("Warning", "FailedDaemonPod", "daemonset-controller", "agent"),
        ("Normal", "SucceededDaemonPod", "daemonset-controller", "agent"),
    }
    assert {(event.message or "").partition(" on node ")[2][:1] for event in events} == {"a", "b"}


async def test_revisions_that_pods_still_have_are_kept(client: Client, run: Run) -> None:
    await add_node(client, "a")
    async with run(daemonset, Kubelet()):
        on_delete = DaemonSetUpdateStrategy(type="OnDelete")
        await client.create(agent_daemonset(revision_history_limit=0, update_strategy=on_delete))
        for image in ("app:2", "app:3"):
            await asyncio.sleep(5)
            await set_image(client, DaemonSet, "agent", image)
        await asyncio.sleep(5)
        revisions = (await client.list(ControllerRevision, "default")).items
        assert sorted(revision.revision or 0 for revision in revisions) == [1, 3]
        (pod,) = await pods(client)
        await client.delete(Pod, pod.metadata.name, "default")
        await asyncio.sleep(5)
        revisions = (await client.list(ControllerRevision, "default")).items
        assert [revision.revision for revision in revisions] == [3]


async def test_a_daemonset_that_is_being_deleted_does_nothing(client: Client, run: Run) -> None:
    await add_node(client, "a")
    agent = agent_daemonset()
    agent.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(agent)
    await client.delete(DaemonSet, "agent", "default")
    async with run(daemonset):
        await asyncio.sleep(5)
        assert await pods(client) == []
        assert (await client.list(ControllerRevision, "default")).items == []


async def test_the_pods_of_the_template_are_bound_by_affinity_and_tolerate_problems(
    server: ApiServer, client: Client, run: Run
) -> None:
    await add_node(client, "a")
    async with run(daemonset):
        await client.create(agent_daemonset())
        await asyncio.sleep(1)
        (first,) = await pods(client)
        server.objects.update(
            "apps", "daemonsets", "default", "agent", lambda live: live["metadata"]["annotations"].clear()
        )
        await client.delete(Pod, first.metadata.name, "default")
        await asyncio.sleep(1)
        (second,) = await pods(client)
    assert first.metadata.labels["pod-template-generation"] == "1"
    assert "pod-template-generation" not in second.metadata.labels
    for pod in (first, second):
        assert not pod.spec.node_name
        assert len(pod.spec.tolerations) == 6
        assert pod.metadata.labels["controller-revision-hash"]
    live = await client.get(DaemonSet, "agent", "default")
    assert live.spec.template.spec.tolerations == []


async def test_the_delays_of_failed_pods_double_and_are_forgotten() -> None:
    backoff = FailedPodsBackoff()

    def of(generation: int, uid: str = "u") -> daemonset.DaemonSetBackoff:
        agent = agent_daemonset()
        agent.metadata.uid = uid
        agent.status.observed_generation = generation
        return backoff.of(agent)

    assert of(1).may_delete("a")
    waiting = of(1)
    assert not waiting.may_delete("a")
    assert waiting.delays == [pytest.approx(1.0)]
    assert waiting.may_delete("b")  # each node by itself
    assert of(2).may_delete("a")  # and each generation
    assert of(1, "v").may_delete("a")
    await asyncio.sleep(1)
    delays = []
    for _ in range(12):
        assert of(1).may_delete("a")
        waiting = of(1)
        assert not waiting.may_delete("a")
        delays += waiting.delays
        await asyncio.sleep(waiting.delays[0])
    assert delays == [pytest.approx(delay) for delay in (2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900)]
    await asyncio.sleep(1700)
    assert of(1).may_delete("a")
    again = of(1)
    again.may_delete("a")
    assert again.delays == [pytest.approx(900)]
    await asyncio.sleep(900 + 1801)
    assert of(1).may_delete("a")
    again = of(1)
    again.may_delete("a")
    assert again.delays == [pytest.approx(1)]


def test_only_labels_and_taints_of_nodes_matter_and_only_to_those_who_act() -> None:
    trigger = Triggers(*daemonset.controllers())
    agent, picky, lost = (agent_daemonset() for _ in range(3))
    picky = agent_daemonset(spec={"nodeSelector": {"role": "x"}})
    for number, (obj, name) in enumerate(((agent, "agent"), (picky, "picky"), (lost, "lost"))):
        obj.metadata = ObjectMeta(name=name, namespace="default", uid=f"u{number}")
    lost.status.number_misscheduled = 1
    lost.spec.template.spec.node_selector = {"role": "y"}
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(containers=[], node_name="a"))
    pod.metadata.owner_references = [controller_reference(agent)]
    cached = [agent, picky, lost]

    def concerned(old: Node | None, new: Node | None, *more: Any) -> set[str]:
        return {name.removeprefix("daemonset default/") for name in trigger.of(old, new, cached=[*cached, *more])}

    plain, labelled = node("a"), node("a", role="x")
    assert concerned(None, plain) == {"agent"}
    assert concerned(plain, labelled) == {"agent", "picky"}
    heartbeat = node("a")
    heartbeat.status = NodeStatus(phase="Running")
    assert concerned(plain, heartbeat) == set()
    assert concerned(plain, labelled, pod) == {"picky"}
    soft, hard = node("a", Taint(key="k", effect="NoSchedule")), node("a", Taint(key="k", effect="NoExecute"))
    other = node("a", Taint(key="other", effect="NoSchedule"))
    assert concerned(soft, other) == set()  # none has a pod there, and none wants one
    assert concerned(soft, plain) == {"agent"}
    assert concerned(plain, soft, pod) == set()  # it may stay
    assert concerned(soft, hard, pod) == {"agent"}
    agent.status.number_misscheduled = 1
    assert concerned(other, soft, pod) == {"agent"}
    pod.spec.node_name = "b"
    assert concerned(soft, hard, pod) == set()
    assert concerned(plain, None) == {"agent"}


async def test_a_refused_pod_is_tried_again_and_the_status_is_written_meanwhile(client: Client) -> None:
    await add_node(client, "a")
    interposed = Interposed(client)
    pods_refused = refusing("", 500, verb="create")

    def rule(call: Call) -> Response | None:
        return pods_refused(call) if call.target().endswith("/pods") else None

    interposed.rules.append(rule)
    async with running(interposed, daemonset):
        await client.create(agent_daemonset())
        await asyncio.sleep(5)
        live = await client.get(DaemonSet, "agent", "default")
        assert live.status.observed_generation == live.metadata.generation
        assert await status_of(client) == {"desiredNumberScheduled": 1, "numberUnavailable": 1}
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert len(await pods(client)) == 1
