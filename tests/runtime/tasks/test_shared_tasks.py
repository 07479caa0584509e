"""Timers and daemons of replicas that share the objects: each object has them at one replica at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.sharding import Sharding
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.declared import Daemon, Every
from tests.runtime.objects import SPACE
from tests.runtime.tasks.feeds import Feed, feed, install

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-59", "R-78")]

OBJECTS = 24


class Group:
    """What all replicas together do."""

    def __init__(self, server: ApiServer, *, ending: float = 1.0, grace: float = 0.0, calling: float = 2.0) -> None:
        self.server = server
        self.grace = grace
        self.ending = ending
        """Seconds that a daemon takes to end."""
        self.calling = calling
        """Seconds that a call of a timer takes."""
        self.overlaps: list[str] = []
        self.daemons: dict[str, str] = {}
        self.calls: dict[str, str] = {}
        self.called: list[str] = []

    async def busy(self, seconds: float) -> None:
        """Work that no cancellation ends."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(until - loop.time())

    def process(self, name: str) -> tuple[asyncio.Event, asyncio.Task[None]]:
        async def follow(ctx: DaemonContext[Feed]) -> None:
            key = ctx.request.name
            if key in self.daemons:
                self.overlaps.append(f"{key} has a daemon at {self.daemons[key]} and at {name}")
            self.daemons[key] = name
            try:
                while True:
                    await asyncio.sleep(3)
                    reading = await ctx.read()
                    reading.obj.status.seen += 1
                    await reading.save_status()
            finally:
                await self.busy(self.ending)
                self.daemons.pop(key, None)

        async def call(ctx: Context[Feed]) -> None:
            key = ctx.request.name
            if key in self.calls:
                self.overlaps.append(f"{key} has a call at {self.calls[key]} and at {name}")
            self.calls[key] = name
            self.called.append(key)
            try:
                await asyncio.sleep(self.calling)
            finally:
                self.calls.pop(key, None)

        client = Client(self.server.transport, credentials=Static.bearer(self.server.token))
        manager = Manager(client, name=name, sharding=Sharding(name="op"))
        manager.add(Controller(Feed, timers=[Every(5, call)], daemons=[Daemon(follow, grace=self.grace)]))
        stop = asyncio.Event()
        return stop, asyncio.create_task(manager.serve(stop))


async def test_each_object_has_its_tasks_at_one_replica(server: ApiServer, client: Client) -> None:
    await install(client)
    names = [f"f{number}" for number in range(OBJECTS)]
    for name in names:
        await client.create(feed(name))
    group = Group(server)
    first = group.process("first")
    await asyncio.sleep(20)
    assert group.daemons == dict.fromkeys(names, "first")
    second = group.process("second")
    await asyncio.sleep(60)
    assert sorted(group.daemons) == sorted(names)
    assert set(group.daemons.values()) == {"first", "second"}
    group.called.clear()
    await asyncio.sleep(52)  # one more than ten periods for some, none twice as often
    assert {group.called.count(name) for name in names} <= {10, 11}
    first[0].set()
    await first[1]
    await asyncio.sleep(60)
    assert group.daemons == dict.fromkeys(names, "second")
    seen = {item.metadata.name: item.status.seen for item in await client.list(Feed, SPACE)}
    assert all(count > 40 for count in seen.values())
    second[0].set()
    await second[1]
    assert (group.daemons, group.overlaps) == ({}, [])


async def test_objects_move_when_their_daemons_have_ended_and_not_before(server: ApiServer, client: Client) -> None:
    await install(client)
    names = sorted(f"f{number}" for number in range(OBJECTS))
    for name in names:
        await client.create(feed(name))
    group = Group(server, ending=90)  # longer than a hand-over takes where nothing is in work
    first = group.process("first")
    await asyncio.sleep(20)
    assert group.daemons == dict.fromkeys(names, "first")
    second = group.process("second")
    await asyncio.sleep(60)
    assert group.daemons == dict.fromkeys(names, "first")
    await asyncio.sleep(60)
    assert sorted(group.daemons) == names
    assert set(group.daemons.values()) == {"first", "second"}
    group.ending = 0
    for stop, serving in (first, second):
        stop.set()
        await serving
    assert group.overlaps == []


async def test_a_daemon_with_a_long_grace_does_not_hold_up_a_hand_over(server: ApiServer, client: Client) -> None:
    await install(client)
    names = sorted(f"f{number}" for number in range(OBJECTS))
    for name in names:
        await client.create(feed(name))
    group = Group(server, grace=3600)
    first = group.process("first")
    await asyncio.sleep(20)
    second = group.process("second")
    await asyncio.sleep(40)
    assert sorted(group.daemons) == names
    assert set(group.daemons.values()) == {"first", "second"}
    for _, serving in (first, second):
        serving.cancel()
    await asyncio.wait([first[1], second[1]])
    assert group.overlaps == []


async def test_a_long_call_of_a_timer_does_not_hold_up_a_hand_over(server: ApiServer, client: Client) -> None:
    await install(client)
    names = sorted(f"f{number}" for number in range(OBJECTS))
    for name in names:
        await client.create(feed(name))
    group = Group(server, calling=250)
    first = group.process("first")
    await asyncio.sleep(10)
    busy = set(group.calls)
    assert busy
    second = group.process("second")
    await asyncio.sleep(35)
    assert set(group.calls.values()) == {"first", "second"}
    stayed = {name for name in busy if group.calls.get(name) == "first"}
    assert stayed, "what stays is not cancelled"
    assert all(group.called.count(name) == 1 for name in stayed)
    for _, serving in (first, second):
        serving.cancel()
    await asyncio.wait([first[1], second[1]])
    assert group.overlaps == []
