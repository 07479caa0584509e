"""When pods may be evicted from a node that is not ready."""

from __future__ import annotations

import pytest

from konverge.kube.nodelifecycle import controller
from konverge.objects.kinds.core_v1 import Node, NodeCondition, NodeStatus
from konverge.objects.meta import ObjectMeta

pytestmark = [pytest.mark.spec("R-40")]


def lost_and_ready(lost: int, ready: int, zone: str = "z") -> list[Node]:
    return [
        Node(
            metadata=ObjectMeta(name=f"{zone}{number}", labels={"topology.kubernetes.io/zone": zone}),
            status=NodeStatus(conditions=[NodeCondition(type="Ready", status="Unknown" if number < lost else "True")]),
        )
        for number in range(lost + ready)
    ]


@pytest.mark.parametrize(
    ("lost", "ready", "expected"),
    [(1, 2, True), (2, 1, True), (3, 0, False), (3, 2, False), (3, 4, True), (60, 2, True)],
)
def test_no_pod_is_evicted_from_a_zone_that_is_mostly_lost(lost: int, ready: int, expected: bool) -> None:
    nodes = lost_and_ready(lost, ready)
    assert controller.may_evict(nodes[0], nodes) is expected


def test_pods_are_evicted_from_a_wholly_lost_zone_while_another_is_ready() -> None:
    nodes = [*lost_and_ready(4, 0, "a"), *lost_and_ready(0, 2, "b")]
    assert controller.may_evict(nodes[0], nodes)
