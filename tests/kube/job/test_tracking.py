"""Counting pods that ended, each exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.job import tracking
from konverge.kube.job.verdict import Verdict
from konverge.kube.job.view import look_at
from konverge.objects.kinds.batch_v1 import Job, JobStatus
from konverge.objects.kinds.batch_v1 import UncountedTerminatedPods as Uncounted
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.job.made import at, indexed, names, pod
from tests.kube.objects import job

pytestmark = pytest.mark.spec("R-36")


@given(
    st.lists(st.sampled_from("abcdef"), unique=True),
    st.lists(st.sampled_from("uvwxyz"), unique=True),
    st.sets(st.sampled_from("abcdefuvwxyz")),
)
def test_settling_counts_each_uid_once(succeeded: list[str], failed: list[str], tracked: set[str]) -> None:
    status = JobStatus(uncounted_terminated_pods=Uncounted(succeeded=succeeded, failed=failed))
    tracking.settle(status, tracked)
    tracking.settle(status, tracked)
    left = status.uncounted_terminated_pods or Uncounted()
    assert (status.succeeded or 0) + len(left.succeeded) == len(succeeded)
    assert (status.failed or 0) + len(left.failed) == len(failed)
    assert set(left.succeeded) | set(left.failed) <= tracked


def noted(owner: Job, *pods: Pod, verdict: Verdict | None = None) -> tuple[str, str, str]:
    """The pods that are released; the uids that are noted as succeeded, and as failed."""
    leaving, all_noted = tracking.note(look_at(owner, list(pods)), verdict)
    assert all_noted
    uncounted = owner.status.uncounted_terminated_pods or Uncounted()
    return names(leaving), " ".join(uncounted.succeeded), " ".join(uncounted.failed)


FAILED, DONE = Verdict(False, "r", "m"), Verdict(True, "r", "m")


def states() -> list[Pod]:
    return [
        pod("ok", "Succeeded"), pod("bad", "Failed"), pod("run"), pod("going", going=True),
        pod("old", "Succeeded", tracked=False), pod("ignored", "Failed", ended=1, code=42),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (None, ("ok bad going ignored", "ok", "bad going")),
        (DONE, ("ok bad run going ignored", "ok", "bad going")),
        (FAILED, ("ok bad run going ignored", "ok", "bad run going")),  # what had not ended counts as failed
    ],
)
def test_pods_that_ended_are_noted_and_released(verdict: Verdict | None, expected: tuple[str, str, str]) -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]
    assert noted(job(podFailurePolicy={"rules": rules}), *states(), verdict=verdict) == expected


def test_what_is_noted_already_is_not_noted_twice() -> None:
    owner = job()
    owner.status.uncounted_terminated_pods = Uncounted(succeeded=["ok"], failed=["bad"])
    assert noted(owner, pod("ok", "Succeeded"), pod("bad", "Failed")) == ("ok bad", "ok", "bad")
    changed = job()
    changed.status.uncounted_terminated_pods = Uncounted(failed=["going"])
    assert noted(changed, pod("going", "Succeeded")) == ("going", "", "going")  # it was counted as failed before


def test_a_job_that_is_being_deleted_releases_all() -> None:
    owner = job()
    owner.metadata.deletion_timestamp = at(1)
    assert noted(owner, pod("run"), pod("ok", "Succeeded")) == ("run ok", "ok", "")


def test_pods_wait_for_their_end_if_only_failed_ones_are_replaced() -> None:
    assert noted(job(podReplacementPolicy="Failed"), pod("going", going=True)) == ("", "", "")


def test_indexes_are_noted_instead_of_uids() -> None:
    owner = indexed(5)
    owner.status.completed_indexes = "0"
    pods = [
        pod("a", "Succeeded", index=0), pod("b", "Succeeded", index=2), pod("c", "Succeeded", index=3),
        pod("beyond", "Succeeded", index=9), pod("f", "Failed", index=1), pod("g", "Failed", index=9),
    ]  # fmt: skip
    assert noted(owner, *pods) == ("a f b c beyond g", "", "f")
    assert (owner.status.completed_indexes, owner.status.succeeded) == ("0,2,3", 3)
    assert owner.status.failed_indexes is None
    empty = indexed(5, backoffLimitPerIndex=0)
    assert noted(empty, pod("f", "Failed", index=1, failures=0)) == ("f", "", "f")
    assert (empty.status.completed_indexes, empty.status.succeeded) == (None, None)
    assert empty.status.failed_indexes == "1"


def test_the_last_failed_pod_of_an_index_is_kept_for_its_successor() -> None:
    owner = indexed(5, backoffLimitPerIndex=3)
    last, before = pod("b", "Failed", index=1, failures=1, ended=2), pod("a", "Failed", index=1, failures=0, ended=1)
    assert noted(owner, before, last) == ("a", "", "a")
    assert noted(owner, before, last, pod("c", index=1)) == ("a b", "", "a b")


@pytest.mark.parametrize("owner", [job(), indexed(900)], ids=["plain", "indexed"])
def test_no_more_pods_are_noted_at_a_time_than_the_status_may_hold(owner: Job) -> None:
    pods = [pod(f"p{number}", "Succeeded", index=number) for number in range(600)]
    leaving, all_noted = tracking.note(look_at(owner, pods), None)
    assert (len(leaving), all_noted) == (500, False)
    owner.status.uncounted_terminated_pods = None
    leaving, all_noted = tracking.note(look_at(owner, pods[:499]), None)
    assert (len(leaving), all_noted) == (499, True)
