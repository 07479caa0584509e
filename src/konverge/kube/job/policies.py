"""The pod failure policy and the success policy of a Job. Pure.

Upstream: pkg/controller/job/pod_failure_policy.go, success_policy.go.
"""

from __future__ import annotations

import msgspec

from konverge.kube.job import job_pods
from konverge.objects.kinds.batch_v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
)
from konverge.objects.kinds.core_v1 import Pod


class Ruling(msgspec.Struct, frozen=True):
    """What a failure policy says about one failed pod."""

    action: str = ""
    """Of the first rule that matches; nothing when none does."""
    message: str = ""
    """Why the whole Job fails, if it does."""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


COUNTED = Ruling()


# upstream: matchPodFailurePolicy
def rule_on(policy: PodFailurePolicy | None, pod: Pod) -> Ruling:
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        match = _match(rule, pod)
        if match:
            fails = rule.action == "FailJob"
            return Ruling(rule.action, f"{match} matching {rule.action} rule at index {index}" if fails else "")
    return COUNTED


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """How a rule matches a pod, as a message; empty when it does not."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        exit_ = _exit_code(rule.on_exit_codes, pod)
        return f"Container {exit_[0]} for pod {where} failed with exit code {exit_[1]}" if exit_ else ""
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    for condition in pod.status.conditions:
        if (condition.type, condition.status) in patterns:
            return f"Pod {where} has condition {condition.type}"
    return ""


def _exit_code(wanted: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> tuple[str, int] | None:
    """The first container that ended with an exit code of the rule. Upstream: matchOnExitCodes."""
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        terminated = status.state.terminated if status.state is not None else None
        if terminated is None or terminated.exit_code == 0:
            continue
        named = wanted.container_name is None or wanted.container_name == status.name
        if named and (terminated.exit_code in wanted.values) == (wanted.operator == "In"):
            return status.name, terminated.exit_code
    return None


def met(policy: SuccessPolicy | None, completions: int, succeeded: set[int]) -> str:
    """Which rule of a success policy is met, as a message; empty when none is. Upstream: matchSuccessPolicy."""
    if policy is None or not succeeded:
        return ""
    for index, rule in enumerate(policy.rules):
        required = (
            None if rule.succeeded_indexes is None else job_pods.parse_indexes(rule.succeeded_indexes, completions)
        )
        if required is None:
            enough = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        else:
            matching = len(required & succeeded)
            counted = rule.succeeded_count is not None and matching >= rule.succeeded_count
            enough = bool(required) and (matching == len(required) or counted)
        if enough:
            return f"Matched rules at index {index}"
    return ""
