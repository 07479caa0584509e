"""Long work beside the event loop.

What a request computes is done on the loop, where it costs least. A large object would hold up all other requests
there: checking one of 3 MB takes seconds. Such work runs on a thread, and the loop takes turns with it: threads of
Python give way to each other every few milliseconds.

Only work that touches nothing of the server but what cannot change (schemas, types, bytes of stored records) may run
there: it reads and changes objects of its own request. Whatever the store or a watch must see is done on the loop
afterwards, guarded by the revision that the request saw (`http/writes.py`).

There are two threads for the whole process: more would only take the loop's turns. On a loop with virtual time the work
is done at once.
"""

from __future__ import annotations

import asyncio
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


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="konverge-aside")


async def run(size: int, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `work(*args)`, which takes as long as a text of `size` bytes makes it.

    >>> asyncio.run(run(10, sorted, [2, 1]))
    [1, 2]
    """
    if size < FROM:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(_threads(), work, *args)
