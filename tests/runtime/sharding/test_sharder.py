"""The sharder alone: whose time runs out when, and what it does then."""

from __future__ import annotations

import math

import pytest

from konverge.runtime.sharding.assignment import ANNOTATION, Assignment, Member
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


def test_an_older_assignment_than_the_one_seen_changes_nothing() -> None:
    sharder = Sharder(15.0)
    first, second = Assignment(1000, (ONE,)), Assignment(1001, (ONE,), (ONE, TWO))
    sharder.saw_assignment(second, "10")
    sharder.saw_assignment(first, "9")
    assert (sharder.assignment, sharder.version) == (second, "10"), "by number, not by letter"
    sharder.saw_assignment(None, "10")
    assert (sharder.assignment, sharder.version) == (None, "10"), "it became unreadable"
    sharder.saw_assignment(None, "")
    assert (sharder.assignment, sharder.version) == (None, "")


def test_a_group_that_has_come_and_gone_is_left_alone() -> None:
    sharder = Sharder(15.0)
    sharder.saw_assignment(Assignment(), "1")
    assert sharder.plan(0.0) == []


def test_a_hand_over_is_begun_waited_for_and_settled() -> None:
    sharder = Sharder(15.0)
    sharder.saw_assignment(Assignment(1000, (ONE,)), "5")
    sharder.saw_lease(lease(ONE, epoch=999), 0.0)
    assert (sharder.plan(0.0), sharder.waits_for(0.0)) == ([], []), "settled: nobody is asked"
    sharder.saw_lease(lease(TWO), 0.0)
    begun = Assignment(1001, (ONE,), (ONE, TWO))
    assert sharder.plan(0.0) == [Publish(begun, "5")]
    sharder.saw_assignment(begun, "6")
    assert (sharder.plan(0.0), sharder.waits_for(0.0)) == ([], [ONE]), "the new one has nothing to give"
    sharder.saw_lease(lease(ONE, "2", epoch=1001), 1.0)
    assert sharder.waits_for(1.0) == []
    assert sharder.plan(1.0) == [Publish(Assignment(1002, (ONE, TWO)), "6")]


def test_before_the_first_members_everybody_is_asked() -> None:
    sharder = Sharder(15.0)
    sharder.saw_lease(lease(ONE), 0.0)
    sharder.saw_lease(lease(TWO, epoch=1000), 0.0)
    sharder.saw_assignment(Assignment(1000, (), (ONE, TWO)), "1")
    assert sharder.waits_for(0.0) == [ONE]


def test_an_object_that_was_made_again_goes_on_above_all_epochs() -> None:
    sharder = Sharder(15.0)
    sharder.saw_lease(lease(ONE, epoch=1007), 0.0)
    sharder.saw_lease(lease(TWO, epoch=1003), 0.0)
    sharder.saw_assignment(Assignment(1006, (ONE,)), "1")
    assert sharder.plan(0.0) == [Publish(Assignment(2007, (), (ONE, TWO)), "1")]
    sharder.saw_assignment(Assignment(1007, (ONE, TWO)), "2")
    assert sharder.plan(0.0) == []
    sharder.saw_assignment(None, "")
    assert sharder.plan(0.0) == [Publish(Assignment(2007, (), (ONE, TWO)), "")]


def test_a_released_lease_is_free_at_once_and_is_deleted_when_nobody_counts_on_it() -> None:
    sharder = Sharder(15.0)
    sharder.saw_lease(lease(ONE, "3", holder=""), 0.0)
    sharder.saw_lease(lease(TWO, epoch=1001), 0.0)
    sharder.saw_assignment(Assignment(1001, (ONE, TWO), (TWO,)), "5")
    assert sharder.waits_for(0.0) == []
    assert sharder.plan(0.0) == [Publish(Assignment(1002, (TWO,)), "5")]
    sharder.saw_assignment(Assignment(1002, (TWO,)), "6")
    assert sharder.plan(0.0) == [Delete(ONE, "3")]
    sharder.saw_assignment(None, "")
    assert Delete(ONE, "3") not in sharder.plan(0.0), "nothing says who has work"
    sharder.lost_lease("one")
    assert sharder.gone == {ONE: -math.inf}


def test_a_member_without_a_lease_is_waited_for_until_it_cannot_believe_in_one() -> None:
    sharder = Sharder(15.0)
    sharder.saw_assignment(Assignment(1001, (ONE, TWO), ()), "5")
    assert sharder.waits_for(2.0) == [ONE, TWO], "they were never seen: a whole duration"
    sharder.saw_lease(lease(TWO), 4.0)
    sharder.saw_lease(lease(Member("two", "2")), 6.0)
    assert sharder.gone == {ONE: 17.0, TWO: 19.0}
    assert (sharder.waits_for(16.9), sharder.waits_for(17.0), sharder.waits_for(19.0)) == ([ONE, TWO], [TWO], [])
    sharder.saw_assignment(Assignment(1002, (ONE,)), "6")
    sharder.plan(20.0)
    assert sharder.gone == {ONE: 17.0}, "those who are no members are forgotten"


def test_a_lease_that_says_the_same_is_not_renewed() -> None:
    sharder = Sharder(15.0)
    sharder.saw_lease(lease(ONE), 0.0)
    sharder.saw_lease(lease(ONE), 5.0)
    assert (sharder.live(14.9), sharder.live(15.0)) == ((ONE,), ())
    sharder.lost_lease("another")
    assert sharder.gone == {}


def test_an_assignment_is_read_as_it_was_written() -> None:
    moving = Assignment(7, (TWO,), (TWO, ONE))
    assert Assignment.read(moving.annotation()) == moving
    assert [Assignment.read(given) for given in ({}, {ANNOTATION: ""}, {ANNOTATION: "{"}, {ANNOTATION: "[]"})] == [
        None
    ] * 4
    assert moving.everyone == (ONE, TWO)
    assert moving.settle() == Assignment(8, (TWO, ONE))
    assert moving.begin(()).settle() == Assignment(9, ())
    assert Assignment(7, (TWO,)).begin((TWO, ONE)) == Assignment(8, (TWO,), (ONE, TWO))
    assert (moving.settled, Assignment(7, (TWO,)).settled, str(ONE)) == (False, True, "one")


def test_in_a_hand_over_a_member_has_what_is_its_own_before_and_after() -> None:
    before, after, moving = Assignment(1, (ONE,)), Assignment(3, (ONE, TWO)), Assignment(2, (ONE,), (ONE, TWO))
    assert before.share(ONE, 64) == frozenset(range(64))
    assert moving.share(ONE, 64) == after.share(ONE, 64) == frozenset(range(64)) - after.share(TWO, 64)
    assert moving.share(TWO, 64) == frozenset()
    assert before.share(Member("one", "another life"), 64) == frozenset()
