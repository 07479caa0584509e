"""An operator in this process is dead when it was killed, whatever it does when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from konverge.check.operator import BURST, SECONDS, Link, _Running
from konverge.runtime import Manager
from konverge.wire.errors import ConnectionLost
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Response

pytestmark = [pytest.mark.virtual, pytest.mark.spec("K-97")]

WRITE = Request("POST", "/api/v1/namespaces/default/events", Headers(), b"{}")


async def answer(request: Request) -> Response:
    return Response(200, Headers(), b"{}")


class Grouped:
    """A manager of two tasks: its own, and one of its group that does something when it is cancelled."""

    def __init__(self, last_words: Callable[[], Awaitable[object]]) -> None:
        self._last_words = last_words
        self.started = asyncio.Event()

    async def serve(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._member())
            await stop.wait()

    async def _member(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await self._last_words()


async def killed(link: Link, last_words: Callable[[], Awaitable[object]]) -> float:
    """Seconds of virtual time that it takes."""
    grouped = Grouped(last_words)
    running = _Running(cast(Manager, grouped), link)
    await grouped.started.wait()
    begin = asyncio.get_running_loop().time()
    await running.kill()
    return asyncio.get_running_loop().time() - begin


async def test_what_it_still_wants_to_write_waits_for_nothing() -> None:
    link = Link(Direct(answer))
    await asyncio.gather(*(link.send(WRITE) for _ in range(int(BURST))))  # from now on a write waits for its turn
    ended: list[BaseException] = []

    async def write() -> None:
        try:
            await link.send(WRITE)
        except ConnectionLost as error:
            ended.append(error)

    assert await killed(link, write) == 0
    assert len(ended) == 1


async def test_a_write_that_waited_for_its_turn_does_not_reach_the_server() -> None:
    reached: list[Request] = []

    async def note(request: Request) -> Response:
        reached.append(request)
        return await answer(request)

    link = Link(Direct(note))
    await asyncio.gather(*(link.send(WRITE) for _ in range(int(BURST))))
    waiting = asyncio.create_task(link.send(WRITE))
    await asyncio.sleep(0)
    link.cut()
    with pytest.raises(ConnectionLost):
        await waiting
    assert len(reached) == BURST


async def test_what_waits_while_it_ends_is_given_time() -> None:
    done: list[bool] = []

    async def tidy() -> None:
        await asyncio.sleep(2.5)
        done.append(True)

    assert await killed(Link(Direct(answer)), tidy) == pytest.approx(2.5)
    assert done == [True]


async def test_what_never_ends_is_given_up() -> None:
    released = asyncio.Event()
    assert await killed(Link(Direct(answer)), released.wait) == pytest.approx(SECONDS)
    released.set()
    await asyncio.sleep(1)  # of virtual time: nothing is left behind
