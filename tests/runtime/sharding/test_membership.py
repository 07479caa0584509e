"""What one member may write and acknowledges, step by step; and how Leases are read that others have written."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.runtime.election import Timing
from konverge.runtime.sharding import Sharding
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.leases import EPOCH, GROUP_LABEL, LEAVING, GroupLeases, read_member
from konverge.runtime.sharding.membership import (
    Acknowledge,
    Began,
    Ended,
    Membership,
    Passed,
    Seen,
    ShareChanged,
    Written,
)
from konverge.runtime.sharding.sharder import MemberLease

pytestmark = pytest.mark.spec("R-79")

A, B = Member("a", "1"), Member("b", "2")
SLOTS = 16
ALONE, MOVING = Assignment(1, (A,)), Assignment(2, (A,), (A, B))


@pytest.fixture
def membership() -> Membership:
    """One that works on everything."""
    made = Membership(Timing(), SLOTS, working={})
    made.step(Written(A, 0.0), 0.0)
    made.step(Seen(ALONE), 0.0)
    assert made.share == frozenset(range(SLOTS))
    return made


def test_what_moves_is_written_until_its_work_has_ended_and_acknowledged_after_that(membership: Membership) -> None:
    moved = min(ALONE.share(A, SLOTS) - MOVING.share(A, SLOTS))
    for _ in range(2):
        membership.step(Began(moved), 0.0)
    effects = membership.step(Seen(MOVING), 1.0)
    assert (membership.may_write(moved, 1.0), membership.acknowledged) == (True, 1)
    assert Acknowledge(2) not in effects
    assert membership.step(Ended(moved), 1.0) == []
    assert (membership.may_write(moved, 1.0), membership.acknowledged) == (True, 1), "a second one is in work"
    assert membership.step(Ended(moved), 1.0) == [Acknowledge(2)]
    assert (membership.may_write(moved, 1.0), membership.finishing) == (False, frozenset())
    assert membership.may_write(min(membership.share), 1.0)


@pytest.mark.parametrize("assignment", [MOVING, Assignment(2, (A,), (B,))], ids=["a part moves", "all moves"])
def test_nothing_is_written_after_the_end_of_the_lease(membership: Membership, assignment: Assignment) -> None:
    moved = min(ALONE.share(A, SLOTS) - assignment.share(A, SLOTS))
    membership.step(Began(moved), 0.0)
    membership.step(Seen(assignment), 1.0)
    end = Timing().renew_deadline
    assert membership.may_write(moved, end - 0.001)
    assert not any(membership.may_write(slot, end) for slot in range(SLOTS))
    (change,) = membership.step(Passed(), end)
    assert isinstance(change, ShareChanged)
    assert (change.at_once, membership.share) == (True, frozenset())
    assert membership.step(Passed(), end) == [], "once"
    membership.step(Written(A, end), end)
    assert not membership.may_write(moved, end), "what was cancelled is not finished"


def test_an_older_assignment_changes_nothing(membership: Membership) -> None:
    membership.step(Seen(MOVING), 1.0)
    share = membership.share
    assert membership.step(Seen(ALONE), 2.0) == []
    assert (membership.share, membership.assignment) == (share, MOVING)


def lease(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "1", **parts.pop("metadata", {})}, **parts}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (lease(), MemberLease(A, "", "", 0.0, "", 0, False)),
        (lease(spec=None, metadata={"annotations": None}), MemberLease(A, "", "", 0.0, "", 0, False)),
        (
            lease(
                spec={"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "now"},
                metadata={"resourceVersion": "7", "annotations": {EPOCH: "3", LEAVING: "true"}},
            ),
            MemberLease(A, "7", "x", 15.0, "now", 3, True),
        ),
        (lease(metadata={"annotations": {EPOCH: "many"}}), MemberLease(A, "", "", 0.0, "", 0, False)),
    ],
)
def test_leases_are_read_whatever_is_in_them(given: dict[str, Any], read: MemberLease) -> None:
    assert read_member(given) == read


def test_a_lease_is_written_over_what_was_read() -> None:
    leases = GroupLeases(Sharding(name="op", namespace="shop", identity="pod-1"))
    made = leases.member_body(None, epoch=1, leaving=False, holder="me")
    assert made["metadata"] == {
        "name": leases.own,
        "namespace": "shop",
        "labels": {GROUP_LABEL: "op"},
        "annotations": {EPOCH: "1"},
    }
    assert (made["spec"]["holderIdentity"], made["spec"]["leaseDurationSeconds"]) == ("me", 15)
    before = lease(
        metadata={"resourceVersion": "7", "labels": {"l": "1"}, "annotations": {"a": "1", EPOCH: "1"}},
        spec={"acquireTime": "then", "holderIdentity": "me"},
    )
    again = leases.member_body(before, epoch=2, leaving=True, holder="")
    assert again["metadata"]["resourceVersion"] == "7", "a race is a conflict"
    assert again["metadata"]["labels"] == {"l": "1", GROUP_LABEL: "op"}
    assert again["metadata"]["annotations"] == {"a": "1", EPOCH: "2", LEAVING: "true"}
    assert (again["spec"]["acquireTime"], again["spec"]["holderIdentity"]) == ("then", "")
    assert before["metadata"]["labels"] == {"l": "1"}, "what was read stays as it was"
