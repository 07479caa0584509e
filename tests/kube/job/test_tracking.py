"""Counting pods that ended, each exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.job import tracking
from konverge.objects.kinds.batch_v1 import JobStatus
from konverge.objects.kinds.batch_v1 import UncountedTerminatedPods as Uncounted

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
