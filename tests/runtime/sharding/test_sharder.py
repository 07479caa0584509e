"""The sharder alone: whose time runs out when, and what it does then."""

from __future__ import annotations

import math

import pytest

from konverge.runtime.sharding.assignment import Member
from konverge.runtime.sharding.sharder import Delete, MemberLease, Publish, Sharder

pytestmark = pytest.mark.spec("R-78")
ONE, TWO = Member("one", "1"), Member("two", "1")


def lease(member: Member, version: str = "1", *, holder: str = "me", **more: object) -> MemberLease:
    return MemberLease(member, version, holder, 15.0, f"at {version}", **more)  # type: ignore[arg-type]


def test_it_looks_again_when_the_next_time_runs_out() -> None:
    sharder = Sharder(15.0)
    assert sharder.due(0.0) == math.inf
    sharder.saw_lease(lease(ONE), 0.0)
    sharder.saw_lease(lease(TWO), 4.0)
    assert sharder.due(0.0) == 15.0
    assert sharder.due(15.0) == 19.0, "what has run out already is done, not waited for"
    sharder.saw_lease(lease(TWO, "2", holder=""), 9.0)
    assert sharder.due(15.0) == math.inf, "a released Lease does not run out"
    sharder.saw_lease(lease(ONE, "2"), 10.0)
    assert sharder.due(15.0) == 25.0
    sharder.lost_lease("one")
    assert sharder.due(15.0) == 25.0, "a member that lost its Lease may believe in it until then"
    assert sharder.due(25.0) == math.inf


def test_a_lease_that_is_not_renewed_is_deleted_at_its_end_and_not_before() -> None:
    sharder = Sharder(15.0)
    sharder.saw_lease(lease(ONE, "7"), 0.0)
    assert [action for action in sharder.plan(14.9) if isinstance(action, Delete)] == []
    assert [action for action in sharder.plan(15.0) if isinstance(action, Delete)] == [Delete(ONE, "7")]


def test_the_first_assignment_names_those_who_want_work() -> None:
    sharder = Sharder(15.0)
    assert sharder.plan(0.0) == []
    sharder.saw_lease(lease(TWO), 0.0)
    sharder.saw_lease(lease(ONE), 0.0)
    sharder.saw_lease(lease(Member("three", "1"), leaving=True), 0.0)
    sharder.saw_lease(lease(Member("four", "1"), holder=""), 0.0)
    (action,) = [action for action in sharder.plan(0.0) if isinstance(action, Publish)]
    assert action.version == ""
    assert action.assignment.successors == (ONE, TWO)
    assert action.assignment.epoch >= 1000
