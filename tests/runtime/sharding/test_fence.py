"""The fence: what leaves a replica is for its own keys, within the time of its Lease, and no later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.cache.record import Key
from konverge.client import (
    Client,
    Conflict,
    ConnectionLost,
    InternalError,
    MergePatch,
    ServerTimeout,
    Static,
    TimedOut,
)
from konverge.client.call import Call
from konverge.client.errors import error_for
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import Status
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.election import Timing
from konverge.runtime.sharding import NotOurs, Sharding
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.fence import Fence
from konverge.runtime.sharding.membership import (
    Acknowledge,
    Began,
    Effect,
    Ended,
    Event,
    Membership,
    Passed,
    Seen,
    ShareChanged,
    Written,
)
from konverge.runtime.writes import attribute_to
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.sharding.test_manager import Process
from tests.runtime.test_elector import Busy, Unreliable, suspended

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-79")]


async def make(
    server: ApiServer, reconcile: Callable[[Context[Secret]], Awaitable[None]], **options: Any
) -> tuple[Any, ...]:
    wire = Unreliable(server.transport, 0.0)
    manager = Manager(Client(wire, credentials=Static.bearer(server.token)), sharding=Sharding(name="op", **options))
    manager.add(Controller(Secret, reconcile))  # type: ignore[arg-type]
    stop = asyncio.Event()
    serving = asyncio.create_task(manager.serve(stop))
    await asyncio.sleep(3)
    return manager, wire, stop, serving


async def test_a_process_that_wakes_up_after_its_lease_writes_nothing(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended in the middle of a reconcile: the clock has gone on, and nothing else of the process has run."""
    refused: list[NotOurs] = []
    slept = 0.0
    real = clock.elapsed

    async def reconcile(ctx: Context[Secret]) -> None:
        nonlocal slept
        slept = 11.0
        try:
            await ctx.client.patch(Secret, "a", MergePatch({"data": {"late": "eA=="}}), SPACE)
        except NotOurs as error:
            refused.append(error)
            raise
        finally:
            slept = 0.0

    monkeypatch.setattr(clock, "elapsed", lambda: real() + slept)
    _, _, stop, serving = await make(server, reconcile)
    await client.create(secret("a"))
    await asyncio.sleep(1)
    assert refused
    assert "late" not in (await client.get(Secret, "a", SPACE)).data
    stop.set()
    await serving


async def test_a_write_that_is_on_its_way_when_the_lease_ends_is_given_up(server: ApiServer, client: Client) -> None:
    began: list[float] = []
    ended: list[tuple[float, BaseException]] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        began.append(clock.elapsed())
        try:
            await ctx.client.create(config_map("late"))
        except BaseException as error:
            ended.append((clock.elapsed(), error))
            raise

    _, wire, stop, serving = await make(server, reconcile)
    inner = wire._inner.send

    async def hang(request: Any) -> Any:
        if "configmaps" in request.target:
            await asyncio.sleep(3600)
        if "leases" in request.target and began:
            raise ConnectionError("away")
        return await inner(request)

    wire._inner = type("Hanging", (), {"send": staticmethod(hang), "stream": wire._inner.stream})()
    await client.create(secret("a"))
    await asyncio.sleep(14)
    assert ended
    assert ended[0][0] - began[0] <= 10.1, "by the renew deadline, five seconds before any other may begin"
    stop.set()
    await serving


@pytest.mark.parametrize(("drain_timeout", "lines"), [(0.0, 40), (15.0, 3)])
async def test_a_reconcile_that_outlives_its_lease_is_cancelled_at_once_and_named_until_it_ends(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture, drain_timeout: float, lines: int
) -> None:
    cancelled: list[float] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        while len(cancelled) < 2:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.append(clock.elapsed())

    manager, wire, stop, serving = await make(server, reconcile, drain_timeout=drain_timeout)
    await client.create(secret("a"))
    await asyncio.sleep(1)
    begun = clock.elapsed()
    wire.away = True
    await asyncio.sleep(50)
    assert [round(at - begun) in (8, 9, 10) for at in cancelled] == [True]
    said = caplog.messages.count("secret default/a is cancelled: the key moves to another replica")
    assert lines <= said <= lines + 2, "at once, and whenever the limit is over once more"
    wire.away = False
    manager._shutdown_timeout = 1.0
    stop.set()
    await serving
    assert len(cancelled) == 2


async def test_a_reconcile_that_moves_may_finish_and_is_cancelled_when_it_takes_too_long(
    server: ApiServer, client: Client
) -> None:
    first = Process(server, "first", drain_timeout=4.0)
    for number in range(12):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(5)
    first.seconds = 60.0
    for number in range(12):
        await client.patch(Secret, f"s{number}", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    await asyncio.sleep(1)
    busy = set(first.in_work)
    assert busy
    second = Process(server, "second", drain_timeout=4.0)
    overlap: list[str] = []
    for _ in range(120):
        await asyncio.sleep(0.1)
        overlap += first.in_work & second.in_work
        assert not set(second.worked) & first.in_work, "a key is in work at two replicas"
    assert not overlap
    assert second.worked, "they were cancelled, and moved"
    assert first.in_work, "what stays is not cancelled"
    first.seconds = 0.0
    for process in (first, second):
        process.manager._shutdown_timeout = 1.0
        await process.end()


async def test_keys_of_another_replica_cannot_be_written_for(server: ApiServer, client: Client) -> None:
    """A task that a reconcile started lives on when its key has moved."""
    answers: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def later(ctx: Context[Secret]) -> None:
        await asyncio.sleep(20)
        try:
            await ctx.client.create(config_map(ctx.request.name))
            answers.append(f"written {ctx.request.name}")
        except NotOurs as error:
            answers.append(f"refused {str(error).split()[0]}")

    async def reconcile(ctx: Context[Secret]) -> None:
        tasks.append(asyncio.create_task(later(ctx)))

    manager, _, stop, serving = await make(server, reconcile)
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(2)
    second = Process(server, "second")
    await asyncio.gather(*tasks)
    names = [f"s{number}" for number in range(20)]
    kept = {name for name in names if manager.shares.replica.owns(Key(SPACE, name))}
    refused = {f"refused {SPACE}/{name}" for name in names if name not in kept}
    assert set(answers) == {f"written {name}" for name in kept} | refused
    assert 0 < len(kept) < 20
    stop.set()
    await serving
    await second.end()


ME = Member("a", "1")


def write() -> Call:
    return Call("patch", ConfigMap.resource, SPACE, "x", body=b"{}")


class Alone:
    """A fence with the state machine behind it, all keys in one slot, and writes that end when the test says so."""

    def __init__(self) -> None:
        self.membership = Membership(Timing(), 1024)
        self.effects: list[Effect] = []
        self.fence = Fence(self.membership, lambda key: 7, self.step)
        self.answered = asyncio.Event()
        self.error: Exception | None = None
        self.step(Seen(Assignment(1, (ME,))))
        self.step(Written(ME, clock.elapsed()))

    def step(self, event: Event) -> None:
        effects = self.membership.step(event, clock.elapsed())
        self.effects += effects
        if any(isinstance(effect, ShareChanged) and effect.at_once for effect in effects):
            self.fence.give_up()

    def acknowledged(self) -> list[int]:
        return [effect.epoch for effect in self.effects if isinstance(effect, Acknowledge)]

    async def call(self, call: object) -> str:
        await self.answered.wait()
        if self.error is not None:
            raise self.error
        return "took effect"

    async def write(self) -> None:
        attribute_to(None, Key(SPACE, "x"))  # type: ignore[arg-type]
        await self.fence.send(self, write())  # type: ignore[arg-type]


async def test_a_write_for_a_key_that_finishes_is_given_up_when_the_lease_ends() -> None:
    alone = Alone()
    alone.step(Began(7))
    writing = asyncio.create_task(alone.write())
    await asyncio.sleep(0)
    alone.step(Seen(Assignment(2, (ME,), ())))
    assert not alone.membership.share
    assert alone.membership.finishing == {7}
    await asyncio.sleep(10)
    alone.step(Passed())
    await asyncio.sleep(1)
    assert writing.done()
    with pytest.raises(NotOurs):
        await writing


async def test_a_write_of_a_task_that_a_reconcile_left_behind_holds_the_acknowledgement() -> None:
    alone = Alone()
    alone.step(Began(7))
    writing = asyncio.create_task(alone.write())
    await asyncio.sleep(0)
    alone.step(Ended(7))
    alone.step(Seen(Assignment(2, (ME,), ())))
    assert alone.acknowledged() == [1], "it may take effect after another began"
    alone.answered.set()
    await writing
    assert alone.acknowledged()[1:], "and nothing holds it when the answer is there"
    assert not alone.membership.working


@pytest.mark.spec("R-101")
@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("away"),
        TimedOut("away"),
        ServerTimeout(Status()),
        InternalError(Status(message="etcdserver: request timed out")),
        error_for(Status(code=502)),
        TimeoutError(),
    ],
    ids=repr,
)
async def test_a_write_whose_answer_was_lost_holds_its_slot_until_it_cannot_take_effect(error: Exception) -> None:
    alone = Alone()
    alone.error = error
    alone.answered.set()
    with pytest.raises(type(error)):
        await alone.write()
    assert alone.membership.working == {7: 1}
    await asyncio.sleep(4.9)
    alone.step(Written(ME, clock.elapsed()))
    assert alone.membership.working == {7: 1}
    await asyncio.sleep(0.2)
    assert alone.membership.working == {}, "the Lease's duration less the renew deadline: 5 seconds"


@pytest.mark.parametrize("error", [Conflict(Status()), InternalError(Status(reason="InternalError"))], ids=repr)
async def test_a_write_that_was_refused_holds_nothing(error: Exception) -> None:
    alone = Alone()
    alone.error = error
    alone.answered.set()
    with pytest.raises(type(error)):
        await alone.write()
    assert alone.membership.working == {}


async def test_a_write_for_no_key_needs_a_valid_lease_alone() -> None:
    alone = Alone()
    alone.error = ConnectionLost("away")
    alone.answered.set()
    with pytest.raises(ConnectionLost):
        await alone.fence.send(alone, write())  # type: ignore[arg-type]
    assert alone.membership.working == {}
    alone.step(Seen(Assignment(2, (Member("b", "1"),))))
    alone.fence.check(None)
    attribute_to(None, Key(SPACE, "x"))  # type: ignore[arg-type]
    assert alone.fence.slot() == 7
    with pytest.raises(NotOurs, match=r"^default/x belongs to another replica: nothing is written$"):
        alone.fence.check(7)
    await asyncio.sleep(10)
    for slot in (None, 7):
        with pytest.raises(NotOurs, match=r"^the Lease of this replica is not valid: nothing is written$"):
            alone.fence.check(slot)


@pytest.mark.spec("R-102")
@pytest.mark.parametrize("slot", [None, 7])
@pytest.mark.parametrize("seconds", [0, 20])
async def test_a_write_that_waits_to_be_sent_again_is_not_sent_when_the_lease_ran_out_meanwhile(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, slot: int | None, seconds: float
) -> None:
    alone, wire = Alone(), Busy(server.transport)
    if slot is not None:
        attribute_to(None, Key(SPACE, "x"))  # type: ignore[arg-type]
    assert alone.fence.slot() == slot
    client = alone.fence.client(Client(wire))
    writing = asyncio.create_task(client.patch(ConfigMap, "x", MergePatch({}), SPACE))
    await asyncio.sleep(0.5)
    assert wire.patches == 1
    suspended(monkeypatch, seconds)
    await asyncio.wait([writing])
    if seconds:
        with pytest.raises(NotOurs, match=r"^the Lease of this replica is not valid: nothing is written$"):
            await writing
        assert wire.patches == 1
    else:
        assert (writing.exception(), wire.patches) == (None, 2)
    assert alone.membership.working == {}


@pytest.mark.spec("R-102")
async def test_a_write_that_waits_to_be_sent_again_is_not_sent_when_its_slot_has_moved(server: ApiServer) -> None:
    """The slot that counts is the one of the beginning, whoever asks."""
    alone, wire = Alone(), Busy(server.transport)
    call = write()
    asked: list[str] = []
    call.ask_before_send(lambda: asked.append("before"))
    attribute_to(None, Key(SPACE, "x"))  # type: ignore[arg-type]
    await alone.fence.send(Client(wire).caller, call)
    assert (asked, wire.patches) == (["before"] * 2, 2)
    alone.step(Seen(Assignment(2, (Member("b", "1"),))))
    alone.answered.set()
    with pytest.raises(NotOurs, match="belongs to another replica"):
        await alone.write()
    attribute_to(None, None)  # type: ignore[arg-type]
    assert call.before_send is not None
    with pytest.raises(NotOurs, match="belongs to another replica"):
        call.before_send()


async def test_a_lease_is_not_released_while_a_write_may_take_effect(server: ApiServer, client: Client) -> None:
    began = asyncio.Event()

    async def reconcile(ctx: Context[Secret]) -> None:
        began.set()
        await ctx.client.create(config_map("late"))

    manager, wire, stop, serving = await make(server, reconcile)
    inner = wire._inner.send

    async def hang(request: Any) -> Any:
        if "configmaps" in request.target:
            await asyncio.sleep(3600)
        return await inner(request)

    wire._inner = type("Hanging", (), {"send": staticmethod(hang), "stream": wire._inner.stream})()
    await client.create(secret("a"))
    await began.wait()
    manager._shutdown_timeout = 1.0
    stop.set()
    await serving
    lease = await client.get(Lease, manager.shares.replica.leases.own, SPACE)
    assert lease.spec.holder_identity, "others wait until it runs out"
