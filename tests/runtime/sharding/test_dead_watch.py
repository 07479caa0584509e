"""A watch of the group that died silently: who is not seen to renew is not dead, and who sees nothing looks again."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.replica import Replica
from konverge.runtime.sharding.sharder import Delete, MemberLease, Publish, Sharder
from tests.runtime.sharding.test_manager import Process

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-79")]

A, B = Member("a", "1"), Member("b", "2")


def watching() -> Sharder:
    sharder = Sharder(15.0)
    sharder.saw_assignment(Assignment(5, (A, B)), "10")
    for member in (A, B):
        sharder.saw_lease(MemberLease(member, "9", member.name, 15.0, "then", 5), 0.0)
    return sharder


def test_a_member_is_dead_when_its_lease_is_deleted() -> None:
    sharder = watching()
    assert sharder.plan(16.0) == [Delete(A, "9"), Delete(B, "9")], "nothing is taken from anybody before"
    assert not sharder.live(16.0)
    sharder.lost_member(B)
    sharder.saw_lease(MemberLease(A, "11", "a", 15.0, "now", 5), 16.0)
    (publish,) = sharder.plan(16.0)
    assert isinstance(publish, Publish)
    assert publish.assignment.successors == (A,)
    sharder.saw_assignment(publish.assignment, "12")
    assert sharder.waits_for(16.0) == [A], "b has had its time"


def test_a_lease_that_was_missed_may_have_been_renewed_until_the_end() -> None:
    sharder = watching()
    sharder.lost_member(Member("b", "another life"))
    assert B.name in sharder.leases
    sharder.lost_member(B, missed=40.0)
    sharder.saw_lease(MemberLease(A, "11", "a", 15.0, "now", 6), 40.0)
    sharder.saw_assignment(Assignment(6, (A, B), (A,)), "12")
    assert sharder.waits_for(54.0) == [B]
    assert sharder.waits_for(55.0) == []


def silence(process: Process) -> Replica:
    """The present watch of the group shows nothing any more; the next one does."""
    replica = process.manager.shares.replica  # type: ignore[union-attr]
    (reflector,) = replica._informer.reflectors
    feed, dead = reflector._feed, reflector._opened

    async def silent(chunk: bytes) -> None:
        if reflector._opened != dead:
            await feed(chunk)

    reflector._feed = silent  # type: ignore[method-assign]
    return replica


@pytest.mark.parametrize("checks", [True, False], ids=["a member looks again", "the sharder alone looks again"])
async def test_a_sharder_that_sees_nothing_stops_nothing(
    server: ApiServer, checks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not checks:
        monkeypatch.setattr(Replica, "_check_watch", lambda replica: None)
    first = Process(server, "first")
    await asyncio.sleep(5)
    second = Process(server, "second")
    await asyncio.sleep(10)
    replica = silence(first)
    assert replica.is_first
    other = second.manager.shares.replica  # type: ignore[union-attr]
    for _ in range(60):
        await asyncio.sleep(1)
        assert replica.membership.share
        assert other.membership.share
    assert replica.members == 2, "it sees the group again"
    third = Process(server, "third")
    await asyncio.sleep(10)
    assert third.manager.shares.replica.membership.share  # type: ignore[union-attr]
    for process in (first, second, third):
        await process.end()


async def test_a_member_that_sees_nothing_holds_up_a_hand_over_for_a_moment_alone(server: ApiServer) -> None:
    first = Process(server, "first")
    await asyncio.sleep(5)
    second = Process(server, "second")
    await asyncio.sleep(10)
    silence(second)
    third = Process(server, "third")
    await asyncio.sleep(30)
    assert third.manager.shares.replica.membership.share  # type: ignore[union-attr]
    for process in (first, second, third):
        await process.end()
