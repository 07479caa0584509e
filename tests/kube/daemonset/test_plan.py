"""What a DaemonSet does next, case by case: pods are written as `o+` (old template, available) and so on."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.daemonset.node_fit import bound_to
from konverge.kube.daemonset.plan import Steps, View, bounds, look_at, manage, roll
from konverge.objects.kinds.apps_v1 import DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from konverge.objects.kinds.core_v1 import Pod, PodCondition, PodSpec, PodStatus, Taint
from konverge.objects.times import now
from tests.kube.objects import daemonset, node

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-35")]

STATES = {"+": "Running", "~": "Running", "-": "Running", "f": "Failed", "s": "Succeeded"}
NONE: tuple[str, str] = ("", "")


def pod(where: str, notation: str, number: int) -> Pod:
    """`o+`: old or new; then + available, ~ ready since now, - not ready, f failed, s succeeded; then ! for one that is
    being deleted, and ? for one that the scheduler has not bound yet."""
    since = now() if notation[1] == "~" else "2025-01-01T00:00:00Z"
    meta = ObjectMeta(name=f"{where}{number}", labels={"controller-revision-hash": notation[0]})
    meta.creation_timestamp = f"2025-01-01T00:00:0{number}Z"
    if "!" in notation:
        meta.deletion_timestamp = "2026-01-01T00:00:00Z"
    spec = PodSpec(containers=[], affinity=bound_to(None, where))
    if "?" not in notation:
        spec.node_name = where
    conditions = [PodCondition(type="Ready", status="True", last_transition_time=since)]
    status = PodStatus(phase=STATES[notation[1]], conditions=conditions if notation[1] in "+~" else [])
    return Pod(metadata=meta, spec=spec, status=status)


def view(situation: str, *, gone: str = "", taints: dict[str, str] | None = None, **fields: Any) -> View:
    """`a: o+ n-, b:` is what the nodes a and b have. `gone` are nodes that are no more."""
    agent = daemonset(spec={"nodeSelector": {"role": "worker"}}, update_strategy=rolling(**fields))
    agent.spec.min_ready_seconds = 30
    nodes, pods = [], []
    for part in situation.split(","):
        name, _, notations = part.strip().partition(":")
        effect = (taints or {}).get(name)
        labels = {} if effect == "unselected" else {"role": "worker"}
        there = [Taint(key="only", effect=effect)] if effect and labels else []
        if name not in gone:
            nodes.append(node(name, *there, **labels))
        pods += [pod(name, notation, number) for number, notation in enumerate(notations.split())]
    return look_at(agent, nodes, list(reversed(pods)), "n")


def rolling(**fields: Any) -> DaemonSetUpdateStrategy:
    return DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=RollingUpdateDaemonSet(**fields))


def written(steps: Steps) -> tuple[str, str]:
    """The nodes that get a pod, and the pods that go."""
    return " ".join(steps.create), " ".join(pod.metadata.name for pod in steps.delete)


@pytest.mark.parametrize(
    ("situation", "surge", "expected"),
    [
        ("a:, b: n+", 0, ("a", "")),
        ("a: n-, b: o+", 0, NONE),  # another template does not matter here
        ("a: n+!", 0, NONE),  # its place is taken until it is gone
        ("a: nf!", 0, ("a", "")),  # one that has ended is not waited for
        ("a: ns!", 0, ("a", "")),
        ("a: nf", 0, ("", "a0")),
        ("a: ns", 0, ("", "a0")),
        ("a: nf ns n+", 0, ("", "a0 a1")),
        ("a: n+ n+ n-", 0, ("", "a1 a2")),  # the oldest stays
        ("a: n+? n+", 0, ("", "a0")),  # and of all those the one that has a node
        ("a: n+ n+!", 0, NONE),
        ("a: n+!", 1, ("a", "")),
        ("a: nf", 1, ("a", "a0")),
        ("a: o+ n+", 1, ("", "a0")),
        ("a: o+ n-", 1, NONE),
        ("a: o+ n~", 1, NONE),
        ("a: o- n-", 1, ("", "a0")),
        ("a: o~ n-", 1, NONE),
        ("a: o-", 1, NONE),
        ("a: n-", 1, NONE),
        ("a: n+ n+", 1, ("", "a1")),
        ("a: o+ o+", 1, ("", "a1")),
        ("a: o+ o+ n+ n+", 1, ("", "a3 a1 a0")),
    ],
)
def test_every_node_has_its_pod(situation: str, surge: int, expected: tuple[str, str]) -> None:
    fields = {"max_surge": surge, "max_unavailable": 0 if surge else 1}
    assert written(manage(view(situation, **fields), lambda node: True)) == expected


@pytest.mark.parametrize(
    ("effect", "surge", "expected"),
    [
        ("NoSchedule", 0, ("", "b0")),
        ("NoSchedule", 1, ("", "b0")),  # it may not come back
        ("NoExecute", 0, ("", "a0 b0")),
        ("unselected", 0, ("", "a0 b0")),
        ("PreferNoSchedule", 0, ("d", "b0")),
        ("PreferNoSchedule", 1, ("b c d", "b0")),
    ],
)
def test_a_node_that_does_not_fit_loses_its_pods(effect: str, surge: int, expected: tuple[str, str]) -> None:
    fields = {"max_surge": surge, "max_unavailable": 0 if surge else 1}
    taints = dict.fromkeys("abcd", effect)
    seen = view("a: n+, b: nf, c: n+!, d:", taints=taints, **fields)
    assert written(manage(seen, lambda node: True)) == expected


@pytest.mark.parametrize(("surge", "deleted"), [("1%", ""), ("0%", "a1")])
def test_a_share_that_allows_one_more_pod_of_a_node_is_surge(surge: str, deleted: str) -> None:
    seen = view("a: o+ n-", max_surge=surge, max_unavailable=1 if surge == "0%" else 0)
    assert written(manage(seen, lambda node: True)) == ("", deleted)


def test_a_pod_for_a_node_that_is_gone_is_deleted_unless_it_ran_there() -> None:
    seen = view("a: n-?, b: n+, c: n-?!, d: n+", gone="abc")
    assert written(manage(seen, lambda node: True)) == ("", "a0")


def test_a_failed_pod_waits_for_its_back_off() -> None:
    seen = view("a: nf, b: nf, c: ns")
    asked: list[str] = []

    def may_delete(name: str) -> bool:
        asked.append(name)
        return name == "b"

    steps = manage(seen, may_delete)
    assert written(steps) == ("", "b0 c0")
    assert [pod.metadata.name for pod in steps.failed] == ["b0"]
    assert [pod.metadata.name for pod in steps.succeeded] == ["c0"]
    assert asked == ["a", "b"]


@pytest.mark.parametrize(
    ("situation", "unavailable", "expected"),
    [
        ("a: o+, b: o+, c: o+", 1, "a0"),
        ("a: o+, b: o+, c: o+", 2, "a0 b0"),
        ("a: o+, b: o+, c: o+", "67%", "a0 b0 c0"),
        ("a: o+, b: o-, c: o+", 1, "b0"),  # it serves no one
        ("a: o+, b: o~, c: o-", 1, "b0 c0"),
        ("a: o+, b: o-, c: o+", 2, "b0 a0"),
        ("a: n+, b: o+, c: o+", 1, "b0"),
        ("a: n-, b: o+, c: o+", 1, ""),
        ("a: n~, b: o+, c: o+", 1, ""),
        ("a: n-, b: o+, c: o+", 2, "b0"),
        ("a:, b: o+, c: o+", 1, ""),
        ("a: o+!, b: o+, c: o+", 1, ""),
        ("a: o+!, b: o+, c: o+", 2, "b0"),
        ("a: o+ n+, b: o+", 1, ""),
        ("a: o+ o+, b: o+", 1, ""),
        ("a: n+ n+, b: o+", 1, ""),
        ("a: n+, b: n+", 1, ""),
    ],
)
def test_old_pods_are_replaced(situation: str, unavailable: Any, expected: str) -> None:
    assert written(roll(view(situation, max_unavailable=unavailable))) == ("", expected)


@pytest.mark.parametrize(
    ("situation", "surge", "expected"),
    [
        ("a: o+, b: o+, c: o+", 1, ("a", "")),
        ("a: o+, b: o+, c: o+", "50%", ("a b", "")),
        ("a: o+, b: o-, c: o~", 1, ("b c a", "")),  # beside one that serves no one, at once
        ("a: o+ n-, b: o+", 1, NONE),
        ("a: o+ n~, b: o+", 1, NONE),
        ("a: o+ n-, b: o+", 2, ("b", "")),
        ("a: o+ n+, b: o+", 1, ("b", "a0")),
        ("a: n+, b: o+", 1, ("b", "")),
        ("a: n+ n+, b: o+", 1, NONE),  # too many: first that is put right
        ("a: o+ o+, b: o+", 1, NONE),
        ("a: o+!, b: o+", 1, ("b", "")),
        ("a: n+, b: n+", 1, NONE),
    ],
)
def test_new_pods_come_beside_old_ones(situation: str, surge: Any, expected: tuple[str, str]) -> None:
    assert written(roll(view(situation, max_surge=surge, max_unavailable=0))) == expected


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        ("a: o+, b: n+, c: n+", "a0"),  # the two others are as many as are wanted
        ("a: o+, b: n+, c: n-", ""),
        ("a: o+, b: o+ n-, c: n+", "a0"),
        ("a: o-, b: n-, c: n-", "a0"),
    ],
)
def test_with_surge_a_pod_leaves_a_node_that_no_longer_fits_when_others_serve(situation: str, expected: str) -> None:
    seen = view(situation, taints={"a": "NoSchedule"}, max_surge=1, max_unavailable=0)
    assert written(roll(seen)) == ("", expected)


def test_a_pod_of_the_same_generation_is_up_to_date() -> None:
    """Written by a version that knew no hashes."""
    seen = view("a: o+, b: o+")
    seen.daemonset.metadata.annotations = {"deprecated.daemonset.template.generation": "4"}
    seen.pods["a"][0].metadata.labels["pod-template-generation"] = "4"
    seen.pods["b"][0].metadata.labels["pod-template-generation"] = "3"
    assert written(roll(seen)) == ("", "b0")
    seen.daemonset.metadata.annotations = {}
    assert written(roll(seen)) == ("", "a0")


@pytest.mark.parametrize(
    ("strategy", "desired", "expected"),
    [
        (rolling(max_unavailable=2), 9, (0, 2)),
        (rolling(max_unavailable="10%"), 11, (0, 2)),
        (rolling(max_unavailable=0, max_surge="10%"), 11, (2, 0)),
        (rolling(max_unavailable=1, max_surge=1), 9, (1, 1)),
        (rolling(max_unavailable=0, max_surge=0), 9, (0, 1)),
        (rolling(max_unavailable="0%"), 9, (0, 1)),
        (rolling(), 9, (0, 1)),
        (rolling(), 0, (0, 0)),
        (DaemonSetUpdateStrategy(type="OnDelete", rolling_update=RollingUpdateDaemonSet(max_surge=1)), 9, (0, 0)),
        (DaemonSetUpdateStrategy(type="RollingUpdate"), 9, (0, 0)),
        (None, 9, (0, 0)),
    ],
)
def test_the_bounds_of_a_rolling_update(strategy: Any, desired: int, expected: tuple[int, int]) -> None:
    agent: DaemonSet = daemonset()
    agent.spec.update_strategy = strategy
    assert bounds(agent, desired) == expected
    if strategy is None or strategy.type == "OnDelete":
        seen = view("a: o+, b: o+")
        seen.daemonset.spec.update_strategy = strategy
        assert written(roll(seen)) == NONE
