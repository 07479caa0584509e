"""Node selectors, affinity terms, taints and tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube.placement import node_matches, tolerates, untolerated
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import PodSpec, Taint, Toleration
from tests.kube.objects import node

pytestmark = pytest.mark.spec("R-35", "R-40")


BIG = node("big", size="9", zone="x")


def chosen(*terms: dict[str, Any], **spec: Any) -> bool:
    """Whether a pod with these alternatives of required node affinity may run on the node `big`."""
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return node_matches(from_dict(PodSpec, {"containers": [], "affinity": affinity, **spec}), BIG)


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (rule("zone", "In", "x", "y"), True),
        (rule("zone", "In", "y"), False),
        (rule("other", "In", "x"), False),
        (rule("zone", "NotIn", "x"), False),
        (rule("zone", "NotIn", "y"), True),
        (rule("other", "NotIn", "x"), True),
        (rule("zone", "Exists"), True),
        (rule("other", "Exists"), False),
        (rule("zone", "DoesNotExist"), False),
        (rule("other", "DoesNotExist"), True),
        (rule("size", "Gt", "8"), True),
        (rule("size", "Gt", "9"), False),
        (rule("size", "Gt", "10"), False),
        (rule("size", "Gt", "-10"), True),
        (rule("size", "Lt", "10"), True),
        (rule("size", "Lt", "9"), False),
        (rule("size", "Lt", "8"), False),
        (rule("size", "Lt", "a"), False),
        (rule("size", "Lt", "9223372036854775807"), True),
        (rule("size", "Lt", "9223372036854775808"), False),  # more than 64 bits
        (rule("size", "Gt", "-9223372036854775808"), True),
        (rule("size", "Gt", "-9223372036854775809"), False),
        (rule("size", "Gt"), False),
        (rule("zone", "Gt", "8"), False),
        (rule("other", "Gt", "8"), False),
        (rule("size", "Near", "8"), False),
    ],
)
def test_a_requirement_chooses_nodes_by_a_label(requirement: dict[str, Any], expected: bool) -> None:
    assert chosen({"matchExpressions": [requirement]}) is expected


def test_all_requirements_of_a_term_hold_and_one_term_is_enough() -> None:
    yes, no = rule("zone", "In", "x"), rule("zone", "In", "y")
    named, other = rule("metadata.name", "In", "big"), rule("metadata.name", "In", "small")
    assert chosen({"matchFields": [named]})
    assert not chosen({"matchFields": [other]})
    assert not chosen({"matchFields": [rule("metadata.uid", "Exists")]})
    assert not chosen({"matchExpressions": [yes, no]})
    assert not chosen({"matchExpressions": [no], "matchFields": [named]})
    assert not chosen({"matchExpressions": [yes], "matchFields": [other]})
    assert chosen({"matchExpressions": [no]}, {"matchExpressions": [yes]})
    assert not chosen({"matchExpressions": [no]}, {"matchFields": [other]})
    assert not chosen({})  # an empty term chooses none
    assert not chosen()


def test_a_node_selector_holds_beside_the_affinity() -> None:
    anywhere = {"matchExpressions": [rule("zone", "Exists")]}
    assert chosen(anywhere, nodeSelector={"size": "9"})
    assert not chosen(anywhere, nodeSelector={"size": "8"})
    assert not chosen(anywhere, nodeSelector={"size": "9", "other": ""})
    assert not chosen({}, nodeSelector={"size": "9"})
    assert node_matches(from_dict(PodSpec, {"containers": [], "nodeSelector": {"size": "9"}}), BIG)
    assert node_matches(from_dict(PodSpec, {"containers": [], "affinity": {}}), BIG)


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        (Toleration(operator="Exists"), ("a", "b"), True),
        (Toleration(key="a", operator="Exists"), ("a", "b"), True),
        (Toleration(key="a", value="b"), ("a", "b"), True),
        (Toleration(key="a", value="c"), ("a", "b"), False),
        (Toleration(key="a"), ("a", "b"), False),
        (Toleration(key="a"), ("a", None), True),
        (Toleration(key="a", value=""), ("a", None), True),
        (Toleration(key="a"), ("a", ""), True),
        (Toleration(value="b"), ("a", "b"), False),  # only Exists may leave the key out
        (Toleration(key="a", operator="Equal", value="b"), ("a", "b"), True),
        (Toleration(key="c", operator="Exists"), ("a", "b"), False),
        (Toleration(operator="Exists", effect="NoExecute"), ("a", "b"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), ("a", "b"), False),
        (Toleration(key="a", operator="Gt", value="5"), ("a", "6"), True),
        (Toleration(key="a", operator="Lt", value="5"), ("a", "6"), False),
        (Toleration(key="a", operator="Lt", value="7"), ("a", "6"), True),
        (Toleration(key="a", operator="Gt", value="5"), ("a", None), False),
    ],
)
def test_a_toleration_matches_a_taint(toleration: Toleration, taint: tuple[str, str | None], expected: bool) -> None:
    assert tolerates(toleration, Taint(key=taint[0], value=taint[1], effect="NoExecute")) is expected


def test_the_first_taint_that_counts_and_is_not_tolerated() -> None:
    spec = from_dict(PodSpec, {"containers": [], "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b"}]})
    tolerated, soft = Taint(key="a", value="x", effect="NoExecute"), Taint(key="c", effect="PreferNoSchedule")
    first, second = Taint(key="d", effect="NoSchedule"), Taint(key="e", effect="NoExecute")
    hard = ("NoSchedule", "NoExecute")
    assert untolerated(spec, [tolerated, soft, first, second], hard) == first
    assert untolerated(spec, [tolerated, soft, second, first], hard) == second
    assert untolerated(spec, [tolerated, soft, first], ("PreferNoSchedule",)) == soft
    assert untolerated(spec, [tolerated, soft, Taint(key="b", effect="NoSchedule")], hard) is None
    assert untolerated(from_dict(PodSpec, {"containers": []}), [tolerated], hard) == tolerated
