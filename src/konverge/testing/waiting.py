"""Waiting in tests, on virtual or real time: until something holds, or until a cluster is at rest."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, overload

from konverge.client import NotFound

if TYPE_CHECKING:
    from konverge.sim import Cluster
    from konverge.testing.real import RealCluster

T = TypeVar("T")


class NotYet(AssertionError):
    """What a test waited for did not come in time."""


@overload
async def eventually(
    condition: Callable[[], Awaitable[T | None]], *, timeout: float = ..., interval: float = ..., message: str = ...
) -> T: ...
@overload
async def eventually(
    condition: Callable[[], T | None], *, timeout: float = ..., interval: float = ..., message: str = ...
) -> T: ...
async def eventually(
    condition: Callable[[], object], *, timeout: float = 60.0, interval: float = 0.1, message: str = ""
) -> object:
    """Wait until a condition holds, and return its value.

        app = await eventually(lambda: running(client, "shop"), timeout=120)

    `condition` is called again and again, every `interval` seconds of the loop's time (virtual time costs nothing). It
    may be a function, a coroutine function, or a function that returns an awaitable. It holds when it returns anything
    but None or False; it does not hold while it raises an AssertionError or a `NotFound`. Other errors end the wait.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        reason, cause = "", None
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value is not None and value is not False:
                return value
            reason = f"the last value was {value!r}"
        except (AssertionError, NotFound) as error:
            reason, cause = f"the last error was {type(error).__name__}: {error}", error
        if loop.time() >= deadline:
            what = message or getattr(condition, "__name__", "").replace("<lambda>", "") or "the condition"
            raise NotYet(f"{what} does not hold after {timeout:g} s: {reason}") from cause
        await asyncio.sleep(min(interval, max(deadline - loop.time(), 0)))


async def settled(cluster: Cluster | RealCluster, *, quiet: float = 1.0, timeout: float = 600.0) -> None:
    """Wait until nothing in a cluster has changed for `quiet` seconds (Leases and Events do not count).

        await settled(cluster)

    Raises `Unsettled`, with the names of those who are still at work, when that does not happen within `timeout`.
    """
    await cluster.settle(quiet=quiet, limit=timeout)
