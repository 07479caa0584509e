"""Which pod is deleted first, rule by rule: each pair differs in one thing, and in later ones to the contrary."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from konverge import clock
from konverge.kube.deletion_order import DELETION_COST, removal_order, scale_down_order
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import format_time

pytestmark = [pytest.mark.spec("R-33"), pytest.mark.virtual]

HOUR, DAY = 3600, 86400


def ago(seconds: float) -> str:
    return format_time(clock.utc_now() - timedelta(seconds=seconds))


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: float | None = HOUR,
    created: float | None = DAY,
    restarts: int = 0,
    sidecar: int = 0,
    cost: str = "",
    uid: str = "",
    deleting: bool = False,
) -> Pod:
    conditions: list[Any] = [] if ready is None else [{"type": "Ready", "status": "True"}]
    if ready:
        conditions[0]["lastTransitionTime"] = ago(ready)
    metadata: dict[str, Any] = {"name": name, "uid": uid or name, "annotations": {DELETION_COST: cost} if cost else {}}
    if created is not None:
        metadata["creationTimestamp"] = ago(created)
    if deleting:
        metadata["deletionTimestamp"] = ago(1)
    inits = [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]
    spec = {"nodeName": node, "containers": [{"name": "c"}], "initContainers": inits}
    status = {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [
            {"name": "b", "restartCount": 0, "ready": True, "image": "", "imageID": ""},
            {"name": "c", "restartCount": restarts, "ready": True, "image": "", "imageID": ""},
        ],
        "initContainerStatuses": [
            {"name": "side", "restartCount": sidecar, "ready": True, "image": "", "imageID": ""},
            {"name": "init", "restartCount": 99 - sidecar, "ready": True, "image": "", "imageID": ""},
        ],
    }
    return from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})


def pairs() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    return {
        "not scheduled": ({"node": "", "phase": "Running"}, {"phase": "Pending", "ready": None}),
        "pending": ({"phase": "Pending"}, {"phase": "Unknown", "ready": None}),
        "unknown": ({"phase": "Unknown"}, {"phase": "Running", "ready": None}),
        "not ready": ({"ready": None}, {"ready": 1, "restarts": 9}),
        "ready for a shorter time": ({"ready": HOUR}, {"ready": 3 * HOUR, "restarts": 9, "created": 1}),
        "ready since no known time": ({"ready": 0}, {"ready": 1, "restarts": 9}),
        "more restarts": ({"restarts": 3, "created": 2 * DAY}, {"restarts": 2, "created": 1, "sidecar": 9}),
        "more restarts of a sidecar": ({"sidecar": 3, "created": 2 * DAY}, {"sidecar": 2, "created": 1}),
        "more restarts while not ready": ({"ready": None, "restarts": 3}, {"ready": None, "restarts": 2, "created": 1}),
        "not ready and younger": ({"ready": None, "created": DAY}, {"ready": None, "created": 3 * DAY}),
        "younger": ({"created": DAY}, {"created": 3 * DAY}),
        "created at no known time": ({"created": None}, {"created": 1}),
    }


@pytest.mark.parametrize("case", pairs())
@pytest.mark.parametrize("order", [removal_order, lambda pods: scale_down_order(pods, pods)], ids=["plain", "ranked"])
def test_the_rules_that_all_pods_are_deleted_by(case: str, order: Any) -> None:
    first, second = (pod(name, **fields) for name, fields in zip("ab", pairs()[case], strict=True))
    assert [item.metadata.name for item in order([first, second])] == ["a", "b"]
    assert [item.metadata.name for item in order([second, first])] == ["a", "b"]


def test_pods_that_are_alike_keep_their_order() -> None:
    first, second = pod("a"), pod("b")
    assert removal_order([first, second]) == scale_down_order([first, second], []) == [first, second]
    assert removal_order([second, first]) == scale_down_order([second, first], []) == [second, first]


# ------------------------------------------------------------------ ReplicaSets


def names(pods: list[Pod], related: list[Pod] | None = None) -> list[str]:
    forwards = [item.metadata.name for item in scale_down_order(pods, related or [])]
    assert forwards == [item.metadata.name for item in scale_down_order(pods[::-1], related or [])]
    return forwards


def test_the_deletion_cost_counts_after_readiness_and_before_the_node() -> None:
    cheap, dear, crowded = pod("cheap", cost="-5"), pod("dear", cost="10", ready=1), pod("crowded", node="full")
    neighbours = [pod("x", node="full"), pod("y", node="full")]
    assert names([dear, crowded, cheap], neighbours) == ["cheap", "crowded", "dear"]
    unready = pod("unready", ready=None, cost="100")
    assert names([cheap, unready]) == ["unready", "cheap"]
    assert [item.metadata.name for item in removal_order([pod("a", cost="5", ready=1), pod("b")])] == ["a", "b"]


@pytest.mark.parametrize("cost", ["+1", "007", "1.5", " 1", "1_0", "\u0661", "x", str(2**31), str(-(2**31) - 1)])
def test_a_deletion_cost_in_another_form_counts_as_none(cost: str) -> None:
    assert names([pod("a", cost=cost), pod("b", cost="-1"), pod("c", cost="1")]) == ["b", "a", "c"]


@pytest.mark.parametrize("cost", ["-1", "-2147483648", "-01"])
def test_a_deletion_cost_may_be_negative(cost: str) -> None:
    assert names([pod("a", cost=cost), pod("b", restarts=3)]) == ["a", "b"]


def test_the_node_with_more_related_pods_loses_one_first() -> None:
    crowded, lonely = pod("crowded", node="full", ready=5 * HOUR), pod("lonely", node="empty", ready=1)
    neighbours = [pod("x", node="full"), pod("y", node="empty")]
    assert names([crowded, lonely], [crowded, lonely]) == ["lonely", "crowded"], "one on each: age decides"
    assert names([crowded, lonely], [crowded, lonely, neighbours[0]]) == ["crowded", "lonely"]
    assert names([crowded, lonely], [crowded, lonely, *neighbours]) == ["lonely", "crowded"]


@pytest.mark.parametrize("gone", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deleting": True}])
def test_related_pods_that_ended_do_not_crowd_a_node(gone: dict[str, Any]) -> None:
    there, elsewhere = pod("there", node="full", ready=5 * HOUR), pod("elsewhere", node="empty", ready=1)
    assert names([there, elsewhere], [there, elsewhere, pod("x", node="full", **gone)]) == ["elsewhere", "there"]


@pytest.mark.parametrize("what", ["ready", "created"])
def test_ages_of_one_magnitude_are_ordered_by_uid(what: str) -> None:
    """2**41 ns are some 37 minutes, 2**42 ns some 73."""
    older: Any = {what: 70 * 60}
    younger: Any = {what: 40 * 60}
    oldest: Any = {what: 80 * 60}
    assert names([pod("old", uid="1", **older), pod("young", uid="2", **younger)]) == ["old", "young"]
    assert names([pod("old", uid="2", **older), pod("young", uid="1", **younger)]) == ["young", "old"]
    assert names([pod("old", uid="1", **oldest), pod("young", uid="2", **younger)]) == ["young", "old"]
    plain = removal_order([pod("old", uid="1", **older), pod("young", uid="2", **younger)])
    assert [item.metadata.name for item in plain] == ["young", "old"]


def test_within_one_magnitude_restarts_do_not_count() -> None:
    assert names([pod("a", ready=40 * 60), pod("b", ready=41 * 60, restarts=9)]) == ["a", "b"]


def test_a_time_in_the_future_is_the_youngest() -> None:
    assert names([pod("future", ready=-HOUR, uid="2"), pod("now", ready=1, uid="1")]) == ["future", "now"]
