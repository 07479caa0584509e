"""What a replica concludes from the Leases of its group, change by change, and what it says about itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from konverge import clock
from konverge.cache.record import Key, receive
from konverge.cache.store import Change, ChangeType
from konverge.client import Client, ConnectionLost
from konverge.runtime.sharding import Sharding
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.leases import EPOCH, LEAVING
from konverge.runtime.sharding.membership import Began, Ended, Seen, ShareChanged, Written
from konverge.runtime.sharding.replica import Replica

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-78")]


class Alone:
    """A replica that no server has answered yet: the test says what its watch shows."""

    def __init__(self, client: Client) -> None:
        self.shares: list[ShareChanged] = []
        self.replica = Replica(client, Sharding(name="op", namespace="shop", identity="me"), self.shares.append)
        self.me = Member(self.replica.leases.own, "1")
        self.version = 0

    def join(self) -> None:
        self.replica.step(Written(self.me, clock.elapsed()))

    def show(self, name: str, uid: str = "1", *, listed: bool = False, **lease: Any) -> None:
        """The watch shows a Lease, or (without a uid) that it is gone."""
        self.version += 1
        meta = {"name": name, "namespace": "shop", "uid": uid or "1", "resourceVersion": str(self.version)}
        body = {"metadata": meta | lease.pop("metadata", {}), "spec": lease}
        _, record, _ = receive(msgspec.json.encode(body))
        old, new = (None, record) if uid else (record, None)
        kind = ChangeType.ADDED if uid else ChangeType.DELETED
        self.replica._changed(Change(kind, Key("shop", name), old, new, listed=listed))

    def show_assignment(self, assignment: Assignment) -> None:
        self.show("op-shards", metadata={"annotations": assignment.annotation()})


@pytest.fixture
def alone(client: Client) -> Alone:
    return Alone(client)


async def test_it_says_why_it_has_no_part_in_the_work(alone: Alone) -> None:
    replica = alone.replica
    assert replica.not_ready() == "no valid Lease in the group shop/op"
    alone.join()
    assert replica.not_ready() == "not a member of the group shop/op yet"
    replica.step(Seen(Assignment(1, (), (alone.me,))))
    assert replica.not_ready() == ""
    replica.step(Seen(Assignment(2, ())))
    assert replica.not_ready() == "not a member of the group shop/op yet"
    await replica.leave(0.0)
    assert replica.not_ready() == "", "it wants no part any more"
    await asyncio.sleep(10)
    assert replica.not_ready() == "no valid Lease in the group shop/op"


async def test_it_counts_the_live_members_and_the_hand_overs(alone: Alone) -> None:
    replica = alone.replica
    live: dict[str, Any] = {"holderIdentity": "x", "leaseDurationSeconds": 15}
    alone.show("op-a", **live)
    alone.show("op-b", **live)
    alone.show("op-c", metadata={"annotations": {LEAVING: "true"}}, **live)
    assert (replica.members, replica.handovers) == (2, 0)
    a, b = Member("op-a", "1"), Member("op-b", "1")
    for assignment in (
        Assignment(5, (), (a, b)),
        Assignment(6, (a, b)),
        Assignment(6, (a, b)),
        Assignment(4, (), (b,)),
    ):
        alone.show_assignment(assignment)
    assert replica.handovers == 1, "a settled one is none, and an older one is not seen"
    assert replica.membership.assignment == Assignment(6, (a, b))
    alone.show_assignment(Assignment(7, (b, a), (a,)))
    assert replica.handovers == 2
    assert replica.remark() == "a hand-over waits for op-a, op-b"
    alone.show("op-b", metadata={"annotations": {EPOCH: "7"}}, **live)
    assert replica.remark() == "a hand-over waits for op-a"
    alone.show("op-a", "", listed=False)
    assert replica.members == 1
    assert replica.sharder.gone == {a: pytest.approx(clock.elapsed() + 15)}
    alone.show("op-shards", "")
    assert (replica.sharder.assignment, replica.sharder.version, replica.remark()) == (None, "", "")


async def test_a_lease_that_a_list_does_not_show_may_have_been_renewed_until_now(alone: Alone) -> None:
    for name in ("op-a", "op-b"):
        alone.show(name, holderIdentity="x", leaseDurationSeconds=15)
    begun = clock.elapsed()
    await asyncio.sleep(4)
    alone.show("op-a", "")
    alone.show("op-b", "", listed=True)
    assert alone.replica.sharder.gone == {
        Member("op-a", "1"): pytest.approx(begun + 15),
        Member("op-b", "1"): pytest.approx(begun + 19),
    }


@pytest.mark.parametrize("uid", ["", "2"], ids=["deleted", "another life"])
async def test_a_replica_whose_lease_is_gone_works_on_nothing_and_joins_again(
    alone: Alone, uid: str, caplog: pytest.LogCaptureFixture
) -> None:
    replica = alone.replica
    alone.join()
    replica.step(Seen(Assignment(1, (alone.me,))))
    replica._lease = {"metadata": {"name": alone.me.name}}
    alone.show(alone.me.name, holderIdentity="x")
    alone.show("op-other", uid)
    assert replica.owns(Key("shop", "x")), "as it was, and another's"
    replica._urgent.clear()
    alone.show(alone.me.name, uid)
    assert not replica.owns(Key("shop", "x"))
    assert (replica.membership.me, replica._lease, replica._urgent.is_set()) == (None, None, True)
    assert [(change.gained, len(change.lost), change.at_once) for change in alone.shares[1:]] == [
        (frozenset(), 1024, True)
    ]
    assert caplog.messages == [f"the Lease {alone.me.name} was deleted: this replica joins the group again"]
    alone.show(alone.me.name, uid)
    assert len(caplog.messages) == 1, "once"


async def test_who_leaves_waits_until_nothing_is_in_work_and_others_may_begin(alone: Alone) -> None:
    replica = alone.replica
    alone.join()
    replica.step(Seen(Assignment(1, (alone.me,))))
    replica.step(Began(7))
    replica._urgent.clear()
    leaving = asyncio.create_task(replica.leave(30))
    await asyncio.sleep(1)
    assert replica._urgent.is_set(), "the Lease is to say so"
    replica.step(Seen(Assignment(2, (alone.me,), ())))
    await asyncio.sleep(1)
    replica.step(Ended(7))
    await asyncio.sleep(1)
    assert not leaving.done(), "it is a member until the hand-over is settled"
    replica.step(Began(8))
    replica.step(Seen(Assignment(3, ())))
    await asyncio.sleep(1)
    assert not leaving.done(), "something is in work"
    replica.step(Ended(8))
    await asyncio.sleep(0.1)
    assert leaving.done()


async def test_who_leaves_waits_no_longer_than_the_limit(alone: Alone) -> None:
    alone.join()
    alone.replica.step(Seen(Assignment(1, (alone.me,))))
    begun = clock.elapsed()
    await alone.replica.leave(5)
    assert clock.elapsed() - begun == pytest.approx(5)


async def test_the_first_of_the_group_is_elected_and_has_a_valid_lease(alone: Alone) -> None:
    replica = alone.replica
    assert not replica.is_first
    alone.join()
    assert not replica.is_first, "it is a member like others"
    replica.elector = SimpleNamespace(is_leader=True)  # type: ignore[assignment]
    assert replica.is_first
    await asyncio.sleep(replica.sharding.timing.lease_duration)
    assert not replica.is_first, "its Lease ran out: others may have its keys"
    alone.join()
    assert replica.is_first
    replica.elector = SimpleNamespace(is_leader=False)  # type: ignore[assignment]
    assert not replica.is_first


class _Shown:
    """The cache of the group, as far as a replica looks for its own Lease."""

    def __init__(self, own: str) -> None:
        self.own = Key("shop", own)
        self.version = 0
        self.restarted: list[tuple[float, str]] = []

    def get(self, key: Key) -> Any:
        assert key == self.own
        return SimpleNamespace(version=self.version) if self.version else None

    def restart_watch(self, namespace: str) -> None:
        self.restarted.append((clock.elapsed(), namespace))


async def test_a_watch_that_does_not_show_our_renewals_is_restarted_after_the_deadline(alone: Alone) -> None:
    replica, shown = alone.replica, _Shown(alone.me.name)
    replica._informer = shown  # type: ignore[assignment]
    deadline = replica.sharding.timing.renew_deadline
    await asyncio.sleep(3 * deadline)
    replica._check_watch()
    replica._lease = {"metadata": {"resourceVersion": "7"}}
    await asyncio.sleep(deadline)
    replica._check_watch()
    assert shown.restarted == [], "nothing was written before, and it has as long as a renewal"
    await asyncio.sleep(0.5)
    replica._check_watch()
    began = clock.elapsed()
    assert shown.restarted == [(began, "shop")]
    await asyncio.sleep(deadline)
    replica._check_watch()
    assert len(shown.restarted) == 1, "the next watch has as long"
    await asyncio.sleep(0.5)
    shown.version = 6
    replica._check_watch()
    assert len(shown.restarted) == 2, "an earlier renewal is not the one that we wrote"
    for version in (7, 8):
        shown.version = version
        await asyncio.sleep(deadline + 1)
        replica._check_watch()
        assert len(shown.restarted) == 2
    shown.version = 6
    await asyncio.sleep(deadline)
    replica._check_watch()
    assert len(shown.restarted) == 2, "counted from when it was shown last"
    await asyncio.sleep(0.5)
    replica._check_watch()
    assert len(shown.restarted) == 3


@pytest.mark.parametrize("error", [ConnectionLost("away"), RuntimeError("the plugin is broken"), None])
async def test_a_lease_that_was_not_written_is_not_held(alone: Alone, error: Exception | None) -> None:
    """Its writer tries again soon, and not after a whole period."""
    replica, bodies = alone.replica, []

    async def create(body: dict[str, Any], namespace: str, **options: Any) -> dict[str, Any]:
        bodies.append((body["metadata"]["name"], namespace, options["timeout"]))
        if error is not None:
            raise error
        return {"metadata": {"name": alone.me.name, "uid": "1", "resourceVersion": "5"}, "spec": {}}

    replica._client = SimpleNamespace(create=create)  # type: ignore[assignment]
    assert await replica._write_lease() is (error is None)
    assert bodies == [(alone.me.name, "shop", replica.sharding.timing.renew_deadline)]
    assert (replica._lease is None, replica.membership.me) == ((False, alone.me) if error is None else (True, None))
