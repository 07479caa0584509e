"""The success policy and the pod failure policy of a Job."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.job import policies
from konverge.objects.codec import from_dict
from konverge.objects.kinds.batch_v1 import PodFailurePolicy, SuccessPolicy
from konverge.objects.kinds.core_v1 import Pod

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
