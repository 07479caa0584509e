"""Leader election as arithmetic."""

from __future__ import annotations

import math

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


def test_a_lease_without_a_holder_or_with_ourselves_may_be_taken_at_once() -> None:
    election = Election("me", Timing())
    assert election.may_take(0)
    election.observe(LeaseRecord(holder="", duration=15, renewed="t1"), now=100)
    assert election.may_take(100)
    election.observe(LeaseRecord(holder="me", duration=15, renewed="t2"), now=100)
    assert election.may_take(100)
    assert not election.leads(100), "an earlier process of the same name wrote it"


def test_a_lease_that_another_holds_ends_our_leadership_at_once() -> None:
    election = Election("me", Timing())
    election.written(election.next_record("t"), begun=100, now=100)
    assert election.deadline() == 110
    election.observe(LeaseRecord(holder="me", duration=15, renewed="t2"), now=101)
    assert election.leads(101)
    election.observe(LeaseRecord(holder="other", duration=15, renewed="t3"), now=102)
    assert not election.leads(102)
    assert election.deadline() == -math.inf
    assert not election.may_take(116.9)
    assert election.may_take(117)


def test_the_first_holder_is_no_transition_and_an_own_lease_without_a_time_gets_one() -> None:
    election = Election("me", Timing(lease_duration=15.9))
    first = election.next_record("t1")
    assert first == LeaseRecord(holder="me", duration=16, acquired="t1", renewed="t1", transitions=0)
    election.observe(LeaseRecord(holder="me", transitions=3), now=0)
    assert election.next_record("t2") == LeaseRecord(
        holder="me", duration=16, acquired="t2", renewed="t2", transitions=3
    )


def test_only_a_holder_releases_and_the_count_of_transitions_stays() -> None:
    election = Election("me", Timing())
    assert election.released_record("t") is None
    election.observe(LeaseRecord(holder="other", transitions=7), now=0)
    assert election.released_record("t") is None
    election.written(election.next_record("t1"), begun=0, now=0)
    assert election.released_record("t2") == LeaseRecord(
        holder="", duration=1, acquired="t2", renewed="t2", transitions=8
    )
    election.released()
    assert not election.leads(0)
    assert election.released_record("t3") is None


def test_a_record_is_read_as_it_is_written_and_absent_fields_are_empty() -> None:
    record = LeaseRecord(holder="me", duration=15, acquired="a", renewed="r", transitions=2)
    assert LeaseRecord.read(record.spec()) == record
    assert record.spec() == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "a",
        "renewTime": "r",
        "leaseTransitions": 2,
    }
    assert LeaseRecord.read({}) == LeaseRecord.read({"holderIdentity": None, "leaseTransitions": None}) == LeaseRecord()


def test_a_timing_at_the_edge() -> None:
    Timing(lease_duration=10.1, renew_deadline=10, retry_period=8.3)
    Timing(lease_duration=0.9, renew_deadline=0.6, retry_period=0.1)
    with pytest.raises(ValueError, match="lease_duration"):
        Timing(lease_duration=15, renew_deadline=12, retry_period=10)


def test_others_wait_at_least_as_long_as_the_holder_acts() -> None:
    """A Lease says its duration in whole seconds: rounded down, it could end before the holder stops."""
    holder = Election("me", Timing(lease_duration=1.9, renew_deadline=1.8, retry_period=0.5))
    record = holder.next_record("t")
    holder.written(record, 0.0, 0.0)
    other = Election("other", Timing())
    other.observe(record, 0.0)
    assert not [at / 10 for at in range(40) if holder.leads(at / 10) and other.may_take(at / 10)]
