"""Which nodes daemons belong on, and how a pod is bound to its node."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.daemonset.node_fit import bound_to, should_run, target_of, tolerations
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Affinity, Pod, PodSpec, Taint, Toleration
from tests.kube.objects import daemonset, node

pytestmark = pytest.mark.spec("R-35")

PROBLEMS = [
    ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
]  # fmt: skip


def spec(**fields: Any) -> PodSpec:
    return from_dict(PodSpec, {"containers": [], **fields})


def test_daemons_tolerate_the_problems_of_nodes() -> None:
    usual = [Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect) for key, effect in PROBLEMS]
    assert tolerations(spec()) == usual
    network = Toleration(key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule")
    assert tolerations(spec(hostNetwork=True)) == [*usual, network]


def test_the_same_toleration_of_the_template_loses_its_time_and_others_stay() -> None:
    same = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    others = [
        {**same, "key": "other", "tolerationSeconds": 1},
        {**same, "effect": "NoSchedule"},
        {**same, "operator": "Equal"},
        {**same, "value": "x"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    ]
    result = tolerations(spec(tolerations=[{**same, "tolerationSeconds": 5}, *others, {**same, "value": ""}]))
    assert [to_dict(toleration) for toleration in result[:6]] == [same, *others]
    assert result[6] == result[0]
    assert len(result) == 7 + len(PROBLEMS) - 1


@pytest.mark.parametrize(
    ("template", "taints", "expected"),
    [
        ({}, [], (True, True)),
        ({"nodeName": "a"}, [], (True, True)),
        ({"nodeName": "b"}, [], (False, False)),
        ({"nodeSelector": {"role": "x"}}, [], (True, True)),
        ({"nodeSelector": {"role": "y"}}, [], (False, False)),
        ({}, [("only", "NoSchedule")], (False, True)),
        ({}, [("only", "NoExecute")], (False, False)),
        ({}, [("only", "PreferNoSchedule")], (True, True)),
        ({}, [("node.kubernetes.io/unschedulable", "NoSchedule")], (True, True)),
        ({}, [("node.kubernetes.io/not-ready", "NoExecute"), ("only", "NoSchedule")], (False, True)),
        ({"tolerations": [{"key": "only", "operator": "Exists"}]}, [("only", "NoExecute")], (True, True)),
        ({"tolerations": [{"key": "only", "operator": "Exists"}]}, [("other", "NoExecute")], (False, False)),
    ],
)
def test_a_daemon_belongs_on_a_node(template: Any, taints: list[tuple[str, str]], expected: tuple[bool, bool]) -> None:
    there = node("a", *(Taint(key=key, effect=effect) for key, effect in taints), role="x")
    assert should_run(daemonset(spec=template), there) == expected


def test_the_rest_of_an_affinity_is_kept() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    preferred = [{"weight": 1, "preference": term}]
    given = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    }
    affinity = from_dict(Affinity, given)
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {**given["nodeAffinity"], "requiredDuringSchedulingIgnoredDuringExecution": required}
    assert to_dict(bound_to(affinity, "a")) == {**given, "nodeAffinity": node_affinity}
    assert to_dict(affinity) == given  # the template's own is not touched
    only = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert to_dict(bound_to(None, "a")) == to_dict(bound_to(Affinity(), "a")) == only


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([], None),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}], "a"),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}], None),
        ([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}], None),
        ([{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}], None),
        ([{"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}], None),
        ([{}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}], "b"),
    ],
)
def test_the_node_that_a_pod_is_meant_for(terms: list[Any], expected: str | None) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = Pod(metadata=ObjectMeta(name="p"), spec=spec(affinity={"nodeAffinity": required}))
    assert target_of(pod) == expected
    pod.spec.node_name = "here"
    assert target_of(pod) == "here"
    assert target_of(Pod(metadata=ObjectMeta(name="p"), spec=spec())) is None
