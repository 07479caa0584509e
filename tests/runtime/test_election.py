"""Leader election as arithmetic."""

from __future__ import annotations

import pytest

from konverge.runtime.election import Election, LeaseRecord, Timing

pytestmark = pytest.mark.spec("R-27")


def test_a_lease_is_taken_only_after_its_own_duration_without_a_change() -> None:
    election = Election("me", Timing())
    held = LeaseRecord(holder="other", duration=15, renewed="t1")
    election.observe(held, now=100)
    election.observe(held, now=110)
    assert not election.may_take(114.9)
    assert election.may_take(115)
    election.observe(LeaseRecord(holder="other", duration=15, renewed="t2"), now=114)
    assert not election.may_take(128.9)


def test_lease_transitions_count_changes_of_the_holder_only() -> None:
    election = Election("me", Timing())
    election.observe(LeaseRecord(holder="other", duration=1, acquired="a", transitions=4), now=0)
    taken = election.next_record("t1")
    assert (taken.transitions, taken.acquired) == (5, "t1")
    election.written(taken, begun=2, now=3)
    kept = election.next_record("t2")
    assert (kept.transitions, kept.acquired, kept.renewed) == (5, "t1", "t2")


def test_leadership_counts_from_the_start_of_the_write() -> None:
    election = Election("me", Timing())
    election.written(election.next_record("t"), begun=100, now=108)
    assert election.leads(109.9)
    assert not election.leads(110)


@pytest.mark.parametrize("numbers", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_a_timing_with_impossible_numbers_is_refused(numbers: tuple[float, float, float]) -> None:
    duration, deadline, period = numbers
    with pytest.raises(ValueError, match="lease_duration > renew_deadline"):
        Timing(lease_duration=duration, renew_deadline=deadline, retry_period=period)
