"""Whichever request is cancelled and however servers end: each request gets its own answer, the pool stays whole."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from konverge.wire import ClientLimits, ConnectionPool, Headers, Request, Response, Sink, WireError

from .support import pool_to, serving, spin

WAYS = ("whole", "chunks", "pieces", "close", "cut", "early")


@dataclass(frozen=True)
class Plan:
    """One request: how its server answers, how it is read, and after how many rounds of the loop it is cancelled."""

    method: str
    way: str
    size: int
    pause: int
    streaming: bool
    cancelled_after: int | None
    begins_after: int


plans = st.lists(
    st.builds(
        Plan,
        method=st.sampled_from(["GET", "POST"]),
        way=st.sampled_from(WAYS),
        size=st.sampled_from([0, 1, 500, 5000]),
        pause=st.integers(0, 6),
        streaming=st.booleans(),
        cancelled_after=st.none() | st.integers(0, 25),
        begins_after=st.integers(0, 12),
    ),
    min_size=2,
    max_size=8,
)


def content(number: int, size: int) -> bytes:
    return b"<%d>" % number * (size + 1)


async def handler(request: Request) -> Response:
    number, way, size, pause = request.target[1:].split("/")
    body = content(int(number), int(size))
    await spin(int(pause))

    async def producer(sink: Sink) -> None:
        for place in range(0, len(body), 700):
            sink.write(body[place : place + 700])
            await spin(int(pause))
            if way == "cut":
                raise ConnectionAbortedError

    if way in ("whole", "early"):
        return Response(200, None, body)
    if way == "close":
        return Response(200, Headers.of({"connection": "close"}), body)
    return Response(200, producer=producer)


async def ask(pool: ConnectionPool, number: int, plan: Plan) -> bytes:
    await spin(plan.begins_after)
    target = f"/{number}/{plan.way}/{plan.size}/{plan.pause}"
    request = Request(plan.method, target, body=b"x" * plan.size if plan.method == "POST" else b"")
    if not plan.streaming:
        return (await pool.send(request)).body
    stream = await pool.stream(request)
    try:
        if plan.way == "early":
            return content(number, plan.size)  # a reader that goes before the end
        await spin(plan.pause)
        return await stream.read()
    finally:
        await stream.aclose()


async def cancelled(task: asyncio.Task[bytes], plan: Plan) -> None:
    if plan.cancelled_after is not None:
        await spin(plan.begins_after + plan.cancelled_after)
        task.cancel()


@given(plans, st.integers(1, 3))
async def test_answers_reach_whom_they_are_for(plans: list[Plan], connections: int) -> None:
    limits = ClientLimits(connections=connections, stream_buffer=1000)
    async with serving(handler) as server, pool_to(server, limits=limits) as pool:
        tasks = [asyncio.create_task(ask(pool, number, plan)) for number, plan in enumerate(plans)]
        await asyncio.gather(*(cancelled(task, plan) for task, plan in zip(tasks, plans, strict=True)))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for number, (plan, result) in enumerate(zip(plans, results, strict=True)):
            if isinstance(result, bytes):
                assert result == content(number, plan.size)
            elif isinstance(result, asyncio.CancelledError):
                assert plan.cancelled_after is not None
            else:
                assert isinstance(result, WireError)
                assert plan.way == "cut" or plan.method == "POST", plan
        for number in range(100, 100 + connections):
            got = await ask(pool, number, Plan("GET", "whole", 3, 0, False, None, 0))
            assert got == content(number, 3)
        assert pool._slots + len(pool._all) == connections
        assert not pool._waiters
