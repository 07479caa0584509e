"""What a Job's pods amount to: the counts, and whether and why the Job finishes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.kube.job import verdict
from konverge.kube.job.verdict import Verdict, judge
from konverge.kube.job.view import View, look_at
from konverge.objects.kinds.batch_v1 import Job, JobCondition, UncountedTerminatedPods
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now
from tests.kube.job.made import container, indexed, names, pod, ready
from tests.kube.objects import job

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-36")]

IGNORE = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]}


def test_pods_are_counted_once() -> None:
    owner = job(podFailurePolicy=IGNORE)
    owner.status.succeeded, owner.status.failed = 10, 20
    owner.status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=["s1"], failed=["f1", "gone"])
    view = look_at(
        owner,
        [
            pod("s1", "Succeeded"), pod("s2", "Succeeded"), pod("s3", "Succeeded", tracked=False),
            pod("f1", "Failed"), pod("f2", "Failed"), pod("f3", "Failed", tracked=False),
            pod("ignored", "Failed", ended=1, code=42), pod("going", going=True),
            pod("r1", conditions=ready()), pod("r2"), pod("r3", "Pending"),
        ],
    )  # fmt: skip
    assert (names(view.new_succeeded), names(view.new_failed)) == ("s2", "f2 ignored going")
    assert (view.succeeded, view.failed) == (10 + 1 + 1, 20 + 2 + 2)
    assert (names(view.active), view.ready, view.terminating) == ("r1 r2 r3", 1, 1)


def test_an_index_succeeds_once() -> None:
    owner = indexed(5)
    owner.status.completed_indexes, owner.status.succeeded = "0,1,9", 2
    view = look_at(
        owner,
        [
            pod("d", "Succeeded", index=3), pod("c", "Succeeded", index=2), pod("again", "Succeeded", index=1),
            pod("beyond", "Succeeded", index=7), pod("none", "Succeeded"), pod("f", "Failed", index=4),
            pod("counted", "Succeeded", index=4, tracked=False),
        ],
    )  # fmt: skip
    assert view.counted_indexes == {0, 1}
    assert view.succeeded_indexes == {0, 1, 2, 3}
    assert (view.succeeded, view.failed) == (4, 1)
    assert view.failed_indexes is None
    assert view.last_failed == {}
    assert names(view.pods) == "none again c d f counted beyond"


@pytest.mark.parametrize(
    ("failures", "limit", "failed"), [(0, 0, True), (0, 1, False), (1, 1, True), (3, 2, True), (1, 2, False)]
)
def test_an_index_fails_beyond_its_limit(failures: int, limit: int, failed: bool) -> None:
    view = look_at(indexed(backoffLimitPerIndex=limit), [pod("a", "Failed", index=2, failures=failures)])
    assert view.failed_indexes == ({2} if failed else set())
    assert list(view.last_failed) == ([] if failed else [2])
    assert look_at(indexed(backoffLimitPerIndex=limit), [pod("a", index=2, failures=9)]).failed_indexes == set()


def test_a_policy_fails_an_index_at_once_or_not_at_all() -> None:
    rules = [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    owner = indexed(backoffLimitPerIndex=3, podFailurePolicy={"rules": rules})
    owner.status.failed_indexes = "0"
    view = look_at(
        owner,
        [
            pod("a", "Failed", index=1, failures=0, ended=1, code=7),
            pod("b", "Failed", index=2, failures=3, ended=1, code=42),
            pod("c", "Failed", index=3, failures=3, ended=1, code=1),
        ],
    )
    assert view.failed_indexes == {0, 1, 3}
    assert {index: kept.metadata.name for index, kept in view.last_failed.items()} == {2: "b"}


def test_of_the_failed_pods_of_an_index_the_latest_is_kept() -> None:
    def kept(*pods: Pod) -> str:
        return " ".join(
            p.metadata.name for p in look_at(indexed(backoffLimitPerIndex=9), list(pods)).last_failed.values()
        )

    older, newer = pod("a", "Failed", index=1, failures=0, ended=1), pod("b", "Failed", index=1, failures=1, ended=2)
    assert kept(older, newer) == kept(newer, older) == "b"
    same = pod("c", "Failed", index=1, failures=1, ended=2)
    assert kept(newer, same) == "c"
    ignored = pod("d", "Failed", index=1, failures=0, ignored=2, ended=3)
    assert kept(newer, ignored) == "d"
    assert kept(ignored, newer) == "d"
    assert kept(pod("late", "Failed", index=1, failures=0, ended=9), newer) == "late"
    assert kept(newer, pod("late", "Failed", index=1, failures=0, ended=9)) == "b"
    assert kept(newer, pod("next", index=1)) == ""  # its successor runs
    assert kept(newer, pod("next", "Succeeded", index=1)) == ""
    assert kept(newer, pod("next", index=2)) == "b"


# ------------------------------------------------------------------ the verdict


def judged(owner: Job, *pods: Pod) -> tuple[bool, str] | None:
    found = judge(look_at(owner, list(pods)))
    return (found.success, found.reason) if found else None


@pytest.mark.parametrize(
    ("limit", "counted", "failing", "exceeded"),
    [(0, 0, 0, False), (0, 0, 1, True), (2, 2, 0, False), (2, 2, 1, True), (None, 6, 0, False), (None, 6, 1, True)],
)
def test_a_job_fails_beyond_its_back_off_limit(limit: int | None, counted: int, failing: int, exceeded: bool) -> None:
    owner = job(backoffLimit=limit)
    owner.status.failed = counted
    found = judged(owner, *(pod(f"f{number}", "Failed") for number in range(failing)))
    assert found == ((False, "BackoffLimitExceeded") if exceeded else None)


@pytest.mark.parametrize(
    ("limit", "restarts", "policy", "exceeded"),
    [
        (3, 3, "OnFailure", True),
        (3, 2, "OnFailure", False),
        (3, 9, "Never", False),
        (0, 0, "OnFailure", False),
        (0, 1, "OnFailure", True),
    ],
)
def test_restarts_count_where_the_kubelet_restarts(limit: int, restarts: int, policy: str, exceeded: bool) -> None:
    owner = job(backoffLimit=limit)
    owner.spec.template.spec.restart_policy = policy
    spread = [restarts // 2, restarts - restarts // 2]
    statuses = {
        "containerStatuses": [container("a", restarts=spread[0])],
        "initContainerStatuses": [container("b", restarts=spread[1])],
    }
    expected = (False, "BackoffLimitExceeded") if exceeded else None
    for phase in ("Running", "Pending"):
        assert judged(owner, pod("p", phase, **statuses)) == expected
    assert judged(owner, pod("p", "Succeeded", **statuses)) is None


async def test_a_deadline_runs_from_the_start() -> None:
    owner = job(activeDeadlineSeconds=100)
    assert verdict.deadline_in(owner) is None
    owner.status.start_time = now()
    assert (verdict.deadline_in(owner), judged(owner)) == (100, None)
    await asyncio.sleep(99)
    assert (verdict.deadline_in(owner), judged(owner)) == (1, None)
    await asyncio.sleep(1)
    assert (verdict.deadline_in(owner), judged(owner)) == (0, (False, "DeadlineExceeded"))
    owner.spec.suspend = True
    assert (verdict.deadline_in(owner), judged(owner)) == (None, None)
    owner.spec.suspend, owner.spec.active_deadline_seconds = False, None
    assert verdict.deadline_in(owner) is None


@pytest.mark.parametrize(
    ("spec", "done", "failed", "expected"),
    [
        ({}, "0,1", "2", None),
        ({}, "0,1", "2,3", (False, "FailedIndexes")),
        ({"maxFailedIndexes": 1}, "", "2", None),
        ({"maxFailedIndexes": 1}, "", "2,3", (False, "MaxFailedIndexesExceeded")),
        ({"maxFailedIndexes": 0}, "", "", None),
        ({"successPolicy": {"rules": [{"succeededCount": 2}]}}, "0,1", "", (True, "SuccessPolicy")),
        ({"successPolicy": {"rules": [{"succeededCount": 2}]}}, "0", "", None),
        ({"successPolicy": {"rules": [{"succeededCount": 2}]}}, "0,1", "2,3", (False, "FailedIndexes")),
    ],
)
def test_indexes_decide(spec: dict[str, Any], done: str, failed: str, expected: tuple[bool, str] | None) -> None:
    owner = indexed(4, backoffLimitPerIndex=1, backoffLimit=2**31 - 1, **spec)
    owner.status.completed_indexes, owner.status.failed_indexes = done, failed
    assert judged(owner) == expected


def test_a_failure_policy_decides_before_the_limits_and_an_earlier_decision_before_all() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    owner = job(backoffLimit=0, podFailurePolicy={"rules": rules})
    fatal = pod("a", "Failed", ended=1, code=42)
    assert judged(owner, fatal) == (False, "PodFailurePolicy")
    assert judged(owner, pod("r", "Running", ended=1, code=42)) is None
    assert judged(owner, pod("b", "Failed", ended=1, code=1)) == (False, "BackoffLimitExceeded")
    for kind, status, expected in (
        ("SuccessCriteriaMet", "True", Verdict(True, "r", "m")),
        ("FailureTarget", "True", Verdict(False, "r", "m")),
    ):
        owner.status.conditions = [JobCondition(type=kind, status=status, reason="r", message="m")]
        assert judge(look_at(owner, [fatal])) == expected
        owner.status.conditions[0].status = "False"
        assert judged(owner, fatal) == (False, "PodFailurePolicy")


def test_the_conditions_of_a_verdict() -> None:
    success, failure = Verdict(True, "", ""), Verdict(False, "", "")
    assert (success.interim, success.final) == ("SuccessCriteriaMet", "Complete")
    assert (failure.interim, failure.final) == ("FailureTarget", "Failed")


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "complete"),
    [
        (3, 3, 0, True), (3, 2, 0, False), (3, 4, 0, True), (3, 3, 1, False),
        (None, 1, 0, True), (None, 0, 0, False), (None, 1, 1, False), (0, 0, 0, True),
    ],
)  # fmt: skip
def test_a_job_is_complete(completions: int | None, succeeded: int, active: int, complete: bool) -> None:
    owner = job(completions=completions)
    owner.status.succeeded = succeeded
    view: View = look_at(owner, [])
    assert verdict.is_complete(view, active) is complete


async def test_a_condition_is_set_in_its_place_and_never_added_as_false() -> None:
    owner = job()
    assert not verdict.put(owner, "Suspended", "False", "r", "m")
    assert owner.status.conditions == []
    assert verdict.put(owner, "Suspended", "True", "r", "m")
    assert verdict.put(owner, "Other", "True", "r", "m")
    first = owner.status.conditions[0]
    assert first.last_transition_time == first.last_probe_time == now()
    await asyncio.sleep(10)
    assert not verdict.put(owner, "Suspended", "True", "r", "m")
    assert owner.status.conditions[0] == first
    for change in (("True", "r", "n"), ("True", "s", "n"), ("False", "s", "n")):
        assert verdict.put(owner, "Suspended", *change)
        assert [condition.type for condition in owner.status.conditions] == ["Suspended", "Other"]
        changed = owner.status.conditions[0]
        assert (changed.status, changed.reason, changed.message) == change
        assert changed.last_transition_time == now()


@pytest.mark.parametrize(
    ("kind", "status", "finished"),
    [("Complete", "True", True), ("Failed", "True", True), ("Failed", "False", False), ("Suspended", "True", False)],
)
def test_a_finished_job(kind: str, status: str, finished: bool) -> None:
    owner = job()
    owner.status.conditions = [JobCondition(type=kind, status=status)]
    assert verdict.is_finished(owner) is finished
    assert verdict.is_true(owner, kind) is (status == "True")
