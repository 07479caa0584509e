"""A coroutine whose first step is done at once."""

from __future__ import annotations

import asyncio

import pytest

from konverge.runtime.webhooks.begun import Begun


async def test_one_that_waits_for_nothing_is_done() -> None:
    async def answer() -> int:
        return 7

    first = Begun(answer())
    assert (first.done, first.result, await first) == (True, 7, 7)


async def test_one_that_fails_fails_at_once() -> None:
    async def answer() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Begun(answer())


async def test_one_that_waits_goes_on_from_there() -> None:
    gate, steps = asyncio.Event(), []

    async def answer() -> int:
        steps.append("first")
        await gate.wait()
        steps.append("second")
        await asyncio.sleep(0)
        return 7

    first = Begun(answer())
    assert (first.done, steps) == (False, ["first"])
    gate.set()
    assert await first == 7
    assert steps == ["first", "second"]


async def test_one_that_waits_too_long_is_cancelled_inside() -> None:
    ended = False

    async def answer() -> int:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True
        return 7

    first = Begun(answer())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await first
    assert ended
