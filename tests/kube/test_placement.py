"""Node selectors, affinity terms, taints and tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube.placement import node_matches, tolerates
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import PodSpec, Taint, Toleration
from tests.kube.objects import node

pytestmark = pytest.mark.spec("R-35", "R-40")


def test_a_node_is_chosen_by_labels_and_name() -> None:
    big = node("big", size="9", zone="x")

    def fits(**term: Any) -> bool:
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return node_matches(from_dict(PodSpec, {"containers": [], "affinity": affinity}), big)

    def rule(key: str, operator: str, *values: str) -> list[dict[str, Any]]:
        return [{"key": key, "operator": operator, "values": list(values)}]

    assert fits(matchExpressions=rule("zone", "In", "x", "y"))
    assert not fits(matchExpressions=rule("zone", "NotIn", "x"))
    assert fits(matchExpressions=rule("other", "NotIn", "x"))
    assert fits(matchExpressions=rule("zone", "Exists"))
    assert fits(matchExpressions=rule("other", "DoesNotExist"))
    assert fits(matchExpressions=rule("size", "Gt", "8"))
    assert not fits(matchExpressions=rule("size", "Lt", "9"))
    assert not fits(matchExpressions=rule("zone", "Gt", "8"))
    assert fits(matchFields=rule("metadata.name", "In", "big"))
    assert not fits()


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        (Toleration(operator="Exists"), ("a", "b"), True),
        (Toleration(key="a", operator="Exists"), ("a", "b"), True),
        (Toleration(key="a", value="b"), ("a", "b"), True),
        (Toleration(key="a", value="c"), ("a", "b"), False),
        (Toleration(key="c", operator="Exists"), ("a", "b"), False),
        (Toleration(operator="Exists", effect="NoSchedule"), ("a", "b"), False),
        (Toleration(key="a", operator="Gt", value="5"), ("a", "6"), True),
        (Toleration(key="a", operator="Lt", value="5"), ("a", "6"), False),
    ],
)
def test_a_toleration_matches_a_taint(toleration: Toleration, taint: tuple[str, str], expected: bool) -> None:
    assert tolerates(toleration, Taint(key=taint[0], value=taint[1], effect="NoExecute")) is expected
