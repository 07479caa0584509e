"""Health, taints and evictions case by case, and which changes concern which node or pod."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from konverge import clock
from konverge.client import Client, MergePatch, NotFound
from konverge.kube.nodelifecycle import controller, eviction
from konverge.kube.nodelifecycle.controller import (
    Health,
    _renew_time,
    may_evict,
    next_check,
    observe,
    wanted_taints,
)
from konverge.kube.nodelifecycle.eviction import EvictionReconciler
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Event, Node, Pod, Taint
from konverge.objects.times import now
from konverge.runtime import Request
from tests.kube.conftest import Run, make_ready, running
from tests.kube.interposed import Interposed
from tests.kube.nodelifecycle.test_controller import renew, say
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-40")]

NEVER: tuple[str, str] = ("", "")


def node(name: str = "a", ready: str | None = None, *, taints: Any = (), **more: Any) -> Node:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    conditions += [{"type": kind, "status": status} for kind, status in more.pop("conditions", {}).items()]
    spec = {"taints": [{"key": key, "effect": effect} for key, effect in taints], **more.pop("spec", {})}
    return from_dict(Node, {"metadata": {"name": name, **more}, "spec": spec, "status": {"conditions": conditions}})


@pytest.mark.parametrize(
    ("known", "uid", "mark", "renewed", "expected"),
    [
        (None, "u", ("1", ""), 99.0, Health("u", ("1", ""), 100, 100)),
        (Health("v", ("1", ""), 50, 97, True), "u", ("1", ""), 99.0, Health("u", ("1", ""), 100, 100)),
        (Health("u", ("1", ""), 50, 97, True), "u", ("1", ""), 50.0, Health("u", ("1", ""), 50, 100, True)),
        (Health("u", ("1", ""), 50, 97), "u", ("1", ""), 50.0, Health("u", ("1", ""), 50, 100)),
        (Health("u", ("1", ""), 50, 97), "u", ("2", ""), 99.0, Health("u", ("2", ""), 99, 100, True)),
        (Health("u", ("1", ""), 50, 95), "u", ("2", ""), 95.0, Health("u", ("2", ""), 95, 100, True)),
        (Health("u", ("1", ""), 50, 95), "u", ("2", ""), 100.0, Health("u", ("2", ""), 100, 100, True)),
        (Health("u", ("1", ""), 50, 94), "u", ("2", ""), 99.0, Health("u", ("2", ""), 100, 100)),
        (Health("u", ("1", ""), 50, 90, True), "u", ("2", ""), 99.0, Health("u", ("2", ""), 99, 100, True)),
        (Health("u", ("1", ""), 50, 97, True), "u", ("2", ""), 96.0, Health("u", ("2", ""), 100, 100)),
        (Health("u", ("1", ""), 50, 97, True), "u", ("2", ""), 101.0, Health("u", ("2", ""), 100, 100)),
        (Health("u", ("1", ""), 50, 97, True), "u", ("1", "x"), None, Health("u", ("1", "x"), 100, 100)),
    ],
)
def test_what_is_known_of_a_node(known: Any, uid: str, mark: Any, renewed: float | None, expected: Health) -> None:
    assert observe(known, uid, mark, renewed, 100.0) == expected


@pytest.mark.parametrize(
    ("alive", "trusted", "silent", "wait"),
    [
        (100, True, False, 40),
        (100, False, False, 5),
        (80, True, False, 20),
        (60, True, False, 10),
        (55, True, False, 5),
        (55, False, False, 5),
        (53, False, False, 3),
        (51, True, False, 1),
        (50, True, True, 50),
        (50, False, True, 50),
        (20, True, True, 50),
    ],
)
def test_when_a_node_is_silent_and_when_it_is_looked_at_again(
    alive: float, trusted: bool, silent: bool, wait: float
) -> None:
    health = Health("u", NEVER, alive, 100, trusted)
    assert controller.is_silent(health, 50) is silent
    assert next_check(health, 50) == pytest.approx(wait)


P = "node.kubernetes.io/"


@pytest.mark.parametrize(
    ("seen", "evict", "expected"),
    [
        (node(ready="True"), True, ""),
        (node(ready="False"), False, "not-ready:NoSchedule"),
        (node(ready="False"), True, "not-ready:NoExecute not-ready:NoSchedule"),
        (node(ready="Unknown"), True, "unreachable:NoExecute unreachable:NoSchedule"),
        (node(ready="True", conditions={"MemoryPressure": "True"}), True, "memory-pressure:NoSchedule"),
        (node(ready="True", conditions={"MemoryPressure": "False", "PIDPressure": "Unknown"}), True, ""),
        (
            node(
                ready="True", conditions={"DiskPressure": "True", "PIDPressure": "True", "NetworkUnavailable": "True"}
            ),
            True,
            "disk-pressure:NoSchedule network-unavailable:NoSchedule pid-pressure:NoSchedule",
        ),
        (node(ready="True", spec={"unschedulable": True}), True, "unschedulable:NoSchedule"),
        (node(ready="True", taints=[(f"{P}not-ready", "NoExecute"), (f"{P}unreachable", "NoSchedule")]), True, ""),
        (node(ready="True", taints=[(f"{P}unschedulable", "NoSchedule")]), True, ""),
        (
            node(
                ready="True", taints=[("mine", "NoExecute"), ("mine", "NoSchedule"), (f"{P}disk-pressure", "NoExecute")]
            ),
            True,
            "mine:NoExecute mine:NoSchedule disk-pressure:NoExecute",
        ),
        (node(ready="True", taints=[(f"{P}not-ready", "PreferNoSchedule")]), True, "not-ready:PreferNoSchedule"),
        (node(ready="False", taints=[(f"{P}not-ready", "NoSchedule")]), False, "not-ready:NoSchedule"),
        (node(taints=[(f"{P}not-ready", "NoSchedule")]), True, "not-ready:NoSchedule"),
        (node(taints=[(f"{P}disk-pressure", "NoSchedule")]), True, ""),
        (node(), True, ""),
    ],
)
def test_the_taints_that_a_node_should_have(seen: Node, evict: bool, expected: str) -> None:
    taints = wanted_taints(seen, evict=evict, now="T")
    assert " ".join(f"{taint.key.removeprefix(P)}:{taint.effect}" for taint in taints) == expected
    had = {(taint.key, taint.effect) for taint in seen.spec.taints}
    assert all((taint.time_added == "T") == ((taint.key, taint.effect) not in had) for taint in taints)


def zone(name: str, lost: int, ready: int, **labels: str) -> list[Node]:
    topology = {"topology.kubernetes.io/zone": name, **labels}
    states = ["Unknown"] * lost + ["True"] * ready
    return [node(f"{name}{number}", state, labels=topology) for number, state in enumerate(states)]


@pytest.mark.parametrize(
    ("nodes", "allowed"),
    [
        (zone("a", 3, 3), True),
        (zone("a", 11, 9), False),  # 55 % of them
        (zone("a", 10, 9), True),
        (zone("a", 2, 1), True),  # two are not enough for a disruption
        (zone("a", 3, 1), False),
        (zone("a", 30, 20), False),
        (zone("a", 30, 21), True),  # more than 50 nodes
        (zone("a", 3, 0), False),
        ([*zone("a", 3, 0), *zone("b", 0, 1)], True),
        ([*zone("a", 3, 1), *zone("b", 0, 9)], False),
        ([*zone("a", 3, 1), *zone("a", 0, 9, **{"topology.kubernetes.io/region": "r"})], False),
        ([*zone("a", 1, 0), *zone("b", 0, 1, **{"node.kubernetes.io/exclude-disruption": ""})], False),
        (zone("a", 1, 0, **{"node.kubernetes.io/exclude-disruption": ""}), True),
    ],
)
def test_when_pods_may_be_evicted(nodes: list[Node], allowed: bool) -> None:
    assert may_evict(nodes[0], nodes) is allowed


async def test_conditions_of_a_silent_node_become_unknown_and_keep_their_times(client: Client, run: Run) -> None:
    await client.create(node("a"))
    pressure = {
        "type": "DiskPressure",
        "status": "Unknown",
        "reason": "Mine",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now()}
    status = MergePatch({"status": {"conditions": [ready, pressure]}})
    await client.patch(Node, "a", status, subresource="status")
    async with run(controller):
        await asyncio.sleep(70)
        live = await client.get(Node, "a")
    found = {c.type: (c.status, c.reason, c.last_transition_time) for c in live.status.conditions}
    assert set(found) == {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}
    assert found["Ready"][:2] == ("Unknown", "NodeStatusUnknown")
    assert found["DiskPressure"] == ("Unknown", "Mine", "2025-01-01T00:00:00Z")
    assert found["MemoryPressure"][:2] == ("Unknown", "NodeStatusNeverUpdated")
    assert str(found["MemoryPressure"][2]) > "2026-01-01T00:00:40Z"
    (never,) = [c for c in live.status.conditions if c.type == "PIDPressure"]
    assert never.last_heartbeat_time == live.metadata.creation_timestamp
    events = {(e.reason, e.source.component if e.source else "") for e in (await client.list(Event)).items}
    assert events == {("RegisteredNode", "node-controller"), ("NodeNotReady", "node-controller")}


async def test_old_names_of_labels_follow_the_new_ones(client: Client, run: Run) -> None:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "windows"}
    await client.create(node("a", labels=labels))
    await client.create(node("b"))
    async with run(controller):
        await asyncio.sleep(1)
        found = (await client.get(Node, "a")).metadata.labels
        assert (found["beta.kubernetes.io/os"], found["beta.kubernetes.io/arch"]) == ("linux", "arm64")
        assert (await client.get(Node, "b")).metadata.labels == {}


async def test_a_node_that_is_being_deleted_is_left_alone(client: Client, run: Run) -> None:
    going = node("a", labels={"kubernetes.io/os": "linux"})
    going.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(going)
    await client.delete(Node, "a")
    async with run(controller):
        await asyncio.sleep(100)
        live = await client.get(Node, "a")
        assert live.status.conditions == []
        assert "beta.kubernetes.io/os" not in live.metadata.labels


# ------------------------------------------------------------------ evictions


def pod(name: str = "p", on: str = "a", *tolerations: dict[str, Any]) -> Pod:
    spec = {"containers": [{"name": "main", "image": "i"}], "nodeName": on, "tolerations": list(tolerations)}
    return from_dict(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def bears(key: str = "", seconds: int | None = None) -> dict[str, Any]:
    toleration: dict[str, Any] = {"operator": "Exists", "effect": "NoExecute"}
    toleration |= {"key": key} if key else {}
    return toleration | ({"tolerationSeconds": seconds} if seconds is not None else {})


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([bears("x")], None),
        ([bears("y")], 0),
        ([bears("x", 30)], 30),
        ([bears("x", 0)], 0),
        ([bears("x", -5)], 0),
        ([bears("x", 30), bears("x", 10)], 30),  # the first that matches
        ([bears()], None),
    ],
)
async def test_when_a_pod_is_evicted(client: Client, run: Run, tolerations: Any, seconds: int | None) -> None:
    await client.create(node("a"))
    await client.create(pod("p", "a", *tolerations))
    await client.create(pod("far", "b"))
    async with run(eviction):
        await asyncio.sleep(5)
        taints = [{"key": "x", "effect": "NoExecute"}, {"key": "soft", "effect": "NoSchedule"}]
        await client.patch(Node, "a", MergePatch({"spec": {"taints": taints}}))
        if seconds:
            await asyncio.sleep(seconds - 2)
            assert (await client.get(Pod, "p", "default")).metadata.deletion_timestamp is None
            await asyncio.sleep(2)
        await asyncio.sleep(2 if seconds is not None else 4000)
        gone = (await client.get(Pod, "p", "default")).metadata.deletion_timestamp is not None
        assert gone is (seconds is not None)
        if gone:
            condition = (await client.get(Pod, "p", "default")).status.conditions[-1]
            assert (condition.type, condition.status) == ("DisruptionTarget", "True")
            assert condition.reason == "DeletionByTaintManager"
            (event,) = (await client.list(Event, "default")).items
            assert (event.reason, event.source and event.source.component) == (
                "TaintManagerEviction", "taint-eviction-controller",
            )  # fmt: skip
        assert (await client.get(Pod, "far", "default")).metadata.deletion_timestamp is None


async def test_the_shortest_of_several_tolerations_counts(client: Client, run: Run) -> None:
    await client.create(node("a", taints=[("x", "NoExecute"), ("y", "NoExecute"), ("z", "NoExecute")]))
    await client.create(pod("p", "a", bears("x", 60), bears("y", 30), bears("z")))
    async with run(eviction):
        await asyncio.sleep(28)
        assert (await client.get(Pod, "p", "default")).metadata.deletion_timestamp is None
        await asyncio.sleep(4)
        assert (await client.get(Pod, "p", "default")).metadata.deletion_timestamp is not None


async def test_a_taint_that_was_away_counts_as_new(client: Client, run: Run) -> None:
    await client.create(node("a"))
    await client.create(pod("p", "a", bears("x", 30)))
    taints = MergePatch({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
    async with run(eviction):
        for _ in range(3):
            await client.patch(Node, "a", taints)
            await asyncio.sleep(20)
            await client.patch(Node, "a", MergePatch({"spec": {"taints": None}}))
            await asyncio.sleep(20)
        assert (await client.get(Pod, "p", "default")).metadata.deletion_timestamp is None


def test_the_time_of_a_taint_is_its_own_if_it_has_one() -> None:
    reconciler = eviction.EvictionReconciler()
    taint = node(taints=[("x", "NoExecute")]).spec.taints[0]
    taint.time_added = "1970-01-01T00:01:00Z"
    tolerations = pod("p", "a", bears("x", 30)).spec.tolerations
    assert reconciler._due("a", [taint], tolerations) == 90
    assert reconciler._due("a", [], tolerations) is None


def test_which_changes_may_evict_a_pod() -> None:
    trigger = Triggers(*eviction.controllers())
    mine = {"taint-eviction default/p"}
    assert trigger.of(None, pod()) == mine
    assert trigger.of(None, pod(on="")) == set()
    assert trigger.of(pod(on=""), pod()) == mine
    assert trigger.of(pod(), pod()) == set()
    assert trigger.of(pod("p", "a", bears("x")), pod()) == mine
    assert trigger.of(pod(), None) == set()
    plain, tainted = node("a"), node("a", taints=[("x", "NoExecute")])
    assert trigger.of(plain, tainted, cached=[pod(), pod("q", "b")]) == mine
    assert trigger.of(tainted, None, cached=[pod()]) == mine
    assert trigger.of(plain, node("a", taints=[("x", "NoSchedule")]), cached=[pod()]) == set()
    assert trigger.of(None, plain, cached=[pod()]) == set()


def test_which_changes_concern_a_node() -> None:
    trigger = Triggers(controller.controllers()[0])
    silent, refusing, fine = node("silent", "Unknown"), node("refusing", "False"), node("fine", "True")
    cached = [silent, refusing, fine]
    lost = {"node-lifecycle silent", "node-lifecycle refusing"}
    fresh = node("fresh")
    assert trigger.of(None, fresh, cached=cached) == {"node-lifecycle fresh"}
    assert trigger.of(fresh, node("fresh", "True"), cached=cached) == lost | {"node-lifecycle fresh"}
    assert trigger.of(node("fresh", "True"), None, cached=cached) == lost | {"node-lifecycle fresh"}
    assert trigger.of(None, node("fresh", "True"), cached=cached, initial=True) == {"node-lifecycle fresh"}

    def on(name: str, ready: str) -> Pod:
        seen = pod("p", name)
        seen.status = from_dict(type(seen.status), {"conditions": [{"type": "Ready", "status": ready}]})
        return seen

    assert trigger.of(None, on("silent", "True"), cached=cached) == {"node-lifecycle silent"}
    assert trigger.of(None, on("silent", "False"), cached=cached) == set()
    assert trigger.of(None, on("refusing", "True"), cached=cached) == set()
    assert trigger.of(None, on("gone", "True"), cached=cached) == set()
    assert trigger.of(None, on("", "True"), cached=cached) == set()
    assert trigger.of(on("silent", "True"), on("silent", "True"), cached=cached) == set()


async def test_pods_of_a_silent_node_that_are_gone_are_no_error(client: Client, run: Run) -> None:
    await client.create(node("a"))
    await say(client, "a")
    await renew(client, "a")
    await client.create(pod("idle"))
    for name in ("p", "q"):
        await client.create(pod(name))
        await make_ready(client, await client.get(Pod, name, "default"))
    async with run(controller):
        await asyncio.sleep(40)
        await client.delete(Pod, "q", "default", grace_period=0)
        await asyncio.sleep(30)
        live = await client.get(Pod, "p", "default")
        assert [(c.type, c.status) for c in live.status.conditions if c.type == "Ready"] == [("Ready", "False")]
        with pytest.raises(NotFound):
            await client.get(Pod, "q", "default")
    events = [event for event in (await client.list(Event, "default")).items if event.reason == "NodeNotReady"]
    assert {(event.type, event.involved_object.name) for event in events} == {("Warning", "p"), ("Normal", "a")}


async def test_a_node_as_it_should_be_is_not_written(client: Client) -> None:
    await client.create(node("a", taints=[("mine", "NoSchedule")]))
    await say(client, "a")
    interposed = Interposed(client)
    async with running(interposed, controller):
        await asyncio.sleep(2)
        before = len(interposed.writes())
        await client.patch(Node, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}))
        await asyncio.sleep(2)
        assert interposed.writes()[before:] == []


async def test_each_value_of_a_taint_has_its_own_time() -> None:
    reconciler = EvictionReconciler()
    began = clock.now()
    assert reconciler._since("a", Taint(key="k", value="1", effect="NoExecute")) == began
    await asyncio.sleep(10)
    for node, value, age in (("a", "1", 10), ("a", "2", 0), ("a", None, 0), ("b", "1", 0)):
        since = reconciler._since(node, Taint(key="k", value=value, effect="NoExecute"))
        assert clock.now() - since == pytest.approx(age), (node, value)
    stated = Taint(key="k", value="1", effect="NoExecute", time_added="2020-01-01T00:00:00Z")
    assert reconciler._since("a", stated) == 1577836800


async def test_a_lease_that_was_never_renewed_says_nothing(client: Client) -> None:
    ctx: Any = SimpleNamespace(client=client, request=Request("", "a"))
    assert await _renew_time(ctx) == ""
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}}
    await client.create(body, "kube-node-lease")
    assert await _renew_time(ctx) == ""
