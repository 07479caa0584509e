"""Long work beside the event loop.

What a request computes is done on the loop, where it costs least. A large object would hold up all other requests
there: checking one of 3 MB takes seconds. Such work runs on a thread, and the loop takes turns with it: threads of
Python give way to each other every few milliseconds.

Only work that touches nothing of the server but what cannot change (schemas, types, bytes of stored records) may run
there: it reads and changes objects of its own request. Whatever the store or a watch must see is done on the loop
afterwards, guarded by the revision that the request saw (`http/writes.py`).

How long work takes does not always show in its size: rules and patterns of a few bytes can take seconds on a short
text. Work that finds out calls `expect`, and begins again aside; so it must do the same when it is done twice.

There are two threads for the whole process: more would only take the loop's turns. On a loop with virtual time the work
is done at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FROM = 32 * 1024
"""Bytes from which work is done aside. The change to a thread and back costs some 200 µs; an object of this size takes
5 to 50 ms."""
_THREADS = 2


MOVES = 20_000
"""Steps of about 0.5 µs that may be done on the loop: 10 ms."""


class Long(Exception):
    """What was begun on the loop takes too long for it."""


class _Place(threading.local):
    on_loop = False
    """Whether this thread does work that can be moved aside."""


_place = _Place()


def expect(steps: int) -> None:
    """Called by work before it takes so many steps: raises `Long` if they are too many for the loop."""
    if steps > MOVES and _place.on_loop:
        raise Long


def is_movable() -> bool:
    """Whether `expect` may raise."""
    return _place.on_loop


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="konverge-aside")


async def run(size: int, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `work(*args)`, which takes as long as a text of `size` bytes makes it.

    >>> asyncio.run(run(10, sorted, [2, 1]))
    [1, 2]
    """
    if size < FROM:
        _place.on_loop = True
        try:
            return work(*args)
        except Long:
            pass
        finally:
            _place.on_loop = False
    return await asyncio.get_running_loop().run_in_executor(_threads(), work, *args)
