"""The success policy and the pod failure policy of a Job."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.job import policies
from konverge.objects.codec import from_dict
from konverge.objects.kinds.batch_v1 import PodFailurePolicy, SuccessPolicy
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.job.made import container, pod

pytestmark = pytest.mark.spec("R-36")


def test_a_success_policy_matches_indexes_and_counts() -> None:
    def met(done: set[int], **rule: Any) -> bool:
        return bool(policies.met(from_dict(SuccessPolicy, {"rules": [rule]}), 10, done))

    assert met({0, 1}, succeededCount=2)
    assert not met({0}, succeededCount=2)
    assert met({0, 3, 4}, succeededIndexes="0,3-4")
    assert not met({0, 3}, succeededIndexes="0,3-4")
    assert met({0, 3}, succeededIndexes="0,3-4", succeededCount=2)
    assert not met({7}, succeededIndexes="0,3-4", succeededCount=1)


def test_a_failure_policy_matches_pod_conditions() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    policy = from_dict(PodFailurePolicy, {"rules": [rule]})
    condition = {"type": "DisruptionTarget", "status": "True"}
    pod = from_dict(Pod, {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {"conditions": [condition]}})
    assert not policies.rule_on(policy, pod).counts
    assert policies.rule_on(policy, Pod(metadata=ObjectMeta(name="p"), spec=pod.spec)).counts


def test_the_first_rule_of_a_success_policy_that_is_met_is_named() -> None:
    rules = [{"succeededIndexes": "0-1"}, {"succeededCount": 3}]
    policy = from_dict(SuccessPolicy, {"rules": rules})
    assert policies.met(policy, 10, {0, 1, 2}) == "Matched rules at index 0"
    assert policies.met(policy, 10, {1, 2, 3}) == "Matched rules at index 1"
    assert policies.met(policy, 10, {1, 2}) == ""
    assert policies.met(policy, 10, set()) == ""
    assert policies.met(None, 10, {1}) == ""
    nothing = from_dict(SuccessPolicy, {"rules": [{"succeededIndexes": "8-9"}]})
    assert policies.met(nothing, 5, {1}) == ""  # none of these indexes exists
    assert policies.met(from_dict(SuccessPolicy, {"rules": [{}]}), 5, {1}) == ""


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"operator": "In", "values": [3, 42]}, "FailJob"),
        ({"operator": "In", "values": [3]}, "FailJob"),
        ({"operator": "In", "values": [4]}, ""),
        ({"operator": "In", "values": [0]}, ""),  # a success is no failure
        ({"operator": "NotIn", "values": [42, 3, 7]}, ""),
        ({"operator": "NotIn", "values": [42]}, "FailJob"),
        ({"operator": "In", "values": [42], "containerName": "main"}, "FailJob"),
        ({"operator": "In", "values": [42], "containerName": "init"}, ""),
        ({"operator": "In", "values": [7], "containerName": "init"}, "FailJob"),
        ({"operator": "NotIn", "values": [42], "containerName": "main"}, ""),
    ],
)
def test_a_failure_policy_matches_exit_codes(requirement: Any, expected: str) -> None:
    seen = pod(
        "p", "Failed",
        containerStatuses=[container("fine", ended=1, code=0), container("other", ended=1, code=3),
                           container("main", ended=1, code=42), container("runs")],
        initContainerStatuses=[container("init", ended=1, code=7)],
    )  # fmt: skip
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "Other", "status": "True"}]}
    policy = from_dict(PodFailurePolicy, {"rules": [ignore, {"action": "FailJob", "onExitCodes": requirement}]})
    ruling = policies.rule_on(policy, seen)
    assert ruling.action == expected
    assert ruling.counts
    assert ("at index 1" in ruling.message) == bool(expected)


def test_a_failure_policy_names_container_and_code_of_the_failure() -> None:
    exits = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    ruling = policies.rule_on(from_dict(PodFailurePolicy, {"rules": [exits]}), pod("p", "Failed", ended=1, code=42))
    assert (
        ruling.message == "Container main for pod default/p failed with exit code 42 matching FailJob rule at index 0"
    )
    index = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    ruling = policies.rule_on(from_dict(PodFailurePolicy, {"rules": [index]}), pod("p", "Failed", ended=1, code=42))
    assert (ruling.action, ruling.message) == ("FailIndex", "")
    assert policies.rule_on(None, pod("p", "Failed", ended=1)).counts
    other = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}
    condition = [{"type": "DisruptionTarget", "status": "True"}]
    disrupted = pod("p", "Failed", conditions=condition)
    assert policies.rule_on(from_dict(PodFailurePolicy, {"rules": [other]}), disrupted).action == ""
    other["onPodConditions"][0]["status"] = "True"  # type: ignore[index]
    ruling = policies.rule_on(from_dict(PodFailurePolicy, {"rules": [other]}), disrupted)
    assert ruling.message == "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"
