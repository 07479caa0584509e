"""The time limit of requests: work that waits is limited, work that does not is left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver.http.pipeline import within


async def test_work_that_does_not_wait_has_no_limit() -> None:
    async def work() -> int:
        return 7

    assert await within(0, work()) == 7


async def test_errors_of_limited_work_come_through() -> None:
    async def work(waits: bool) -> None:
        if waits:
            await asyncio.sleep(0)
        raise KeyError("k")

    for waits in (False, True):
        with pytest.raises(KeyError, match="k"):
            await within(5, work(waits))


async def test_limited_work_can_wait_several_times() -> None:
    loop = asyncio.get_running_loop()
    later = loop.create_future()

    async def work() -> list[Any]:
        loop.call_soon(later.set_result, "a")
        first = await later
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            second = await asyncio.sleep(0, "b")
        failing = loop.create_future()
        loop.call_soon(failing.set_exception, ValueError("c"))
        with pytest.raises(ValueError, match="c"):
            await failing
        return [first, second]

    assert await within(5, work()) == ["a", "b"]


async def test_work_that_waits_too_long_is_ended() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append("yes")

    with pytest.raises(TimeoutError):
        await within(0.001, work())
    assert cleaned == ["yes"]


async def test_limited_work_can_be_cancelled() -> None:
    begun = asyncio.Event()
    cleaned: list[str] = []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cleaned.append("yes")
            raise

    task = asyncio.create_task(within(5, work()))
    await begun.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["yes"]
