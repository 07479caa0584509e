"""Long work beside the event loop.

What a request computes is done on the loop, where it costs least. A large object would hold up all other requests
there: checking one of 3 MB takes seconds. Such work runs on a thread, and the loop takes turns with it: threads of
Python give way to each other. By default they do so every 5 ms, and a small write needs several turns; while there is
work aside, they do so every half millisecond.

Only work that touches nothing of the server but what cannot change (schemas, types, bytes of stored records) may run
there: it reads and changes objects of its own request. What it needs of the store it asks by `on_loop`. Whatever the
store or a watch must see is done on the loop afterwards, guarded by the revision that the request saw
(`http/writes.py`).

How long work takes does not always show in its size: rules and patterns of a few bytes can take seconds on a short
text. Work that finds out calls `expect`, and begins again aside; so it must do the same when it is done twice.

There is one thread for the whole process: more would only take the loop's turns (measured in
docs/architecture/apiserver.md). On a loop with virtual time the work is done on the loop itself, after and before
a pause that its seed decides: others come in between there as they do on a real one.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar, TypeVarTuple, Unpack

from konverge import clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FROM = 32 * 1024
"""Bytes from which work is done aside. The change to a thread and back costs some 200 µs; an object of this size takes
5 to 50 ms."""
_SLICE = 0.1
"""Seconds after which work that waits for a loop looks whether that one still runs."""
PAUSE = 0.0
"""Seconds of virtual time, at most, that pass before work and after it; with 0, others have their turn all the same."""
_SWITCH = 0.0005
"""Seconds after which the thread gives way to the loop."""
MOVES = 20_000
"""Steps of about 0.5 µs that may be done on the loop: 10 ms."""


class Long(Exception):
    """What was begun on the loop takes too long for it."""


class _Place(threading.local):
    on_loop = False
    """Whether this thread does work that can be moved aside."""
    spent = 0
    """Steps that this work has taken, as far as it said so."""
    loop: asyncio.AbstractEventLoop | None = None
    """The loop that waits for the work of this thread, which is aside."""


_place = _Place()


def expect(steps: int) -> None:
    """Called by work before it takes so many steps: raises `Long` if they are too many for the loop."""
    if steps > MOVES and _place.on_loop:
        raise Long


def spend(steps: int) -> None:
    """Called by work when it has taken so many steps: raises `Long` once all together are too many for the loop."""
    if _place.on_loop:
        _place.spent += steps
        expect(_place.spent)


def is_movable() -> bool:
    """Whether `expect` may raise."""
    return _place.on_loop


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="konverge-aside")


async def run(size: int, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `work(*args)`, which takes as long as a text of `size` bytes makes it.

    >>> asyncio.run(run(10, sorted, [2, 1]))
    [1, 2]
    """
    if size < FROM:
        _place.on_loop, _place.spent = True, 0
        try:
            return work(*args)
        except Long:
            pass
        finally:
            _place.on_loop = False
    if clock.is_simulated():  # virtual time has no threads
        await _others_first()
        result = work(*args)
        await _others_first()
        return result
    loop = asyncio.get_running_loop()
    with collector_paused:
        return await loop.run_in_executor(_threads(), _giving_way, loop, work, *args)


async def _others_first() -> None:
    rng = clock.rng()
    for _ in range(rng.randrange(3)):
        await asyncio.sleep(rng.uniform(0, PAUSE))


def _giving_way(loop: asyncio.AbstractEventLoop, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    _place.loop = loop
    try:
        return work(*args)
    finally:
        _place.loop = None
        sys.setswitchinterval(before)


class _Collector:
    """Python's collector of cycles, which makes no full collection while large requests are under way.

    It stops all threads. A full collection walks over all objects that live: over the hundreds of thousands of a large
    request too, which takes up to 700 ms. They are trees, freed without it when the request ends. Collections of young
    objects go on: each looks at some thousands of them, and what small requests leave behind is among those.

    (Without any collection, all objects would stay young, and the first collection after that would walk over them.)
    """

    LONGEST = 600.0
    """Seconds of one pause: under large requests without end, there is a full collection nevertheless."""
    TURN = 1.0
    """Seconds in which there may be one then."""
    NEVER = 1 << 30
    """Collections of the middle generation before a full one."""

    def __init__(self) -> None:
        self._requests = 0
        self._usual: tuple[int, int, int] | None = None
        """The thresholds from before the pause."""
        self._limit: threading.Timer | None = None
        """Ends the pause, also where a loop was closed over a request that will never end."""
        self._not_before = 0.0

    def __enter__(self) -> None:
        self._requests += 1
        if self._requests == 1 and self._usual is None and time.monotonic() >= self._not_before:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], self.NEVER)
            self._limit = threading.Timer(self.LONGEST, self._give_turn)
            self._limit.daemon = True
            self._limit.start()

    def __exit__(self, *error: object) -> None:
        self._requests = max(0, self._requests - 1)  # it may have outlived a pause
        if not self._requests and self._limit is not None:
            self._limit.cancel()
            self.forget()

    def _give_turn(self) -> None:
        """In the timer's thread."""
        self._not_before = time.monotonic() + self.TURN
        self.forget()

    def forget(self) -> None:
        """There is no request any more: the collector works as it did."""
        self._requests, self._limit = 0, None
        usual, self._usual = self._usual, None
        if usual is not None and gc.get_threshold() == (*usual[:2], self.NEVER):  # else another has set it meanwhile
            gc.set_threshold(*usual)


collector_paused = _Collector()
"""`with collector_paused:` around a large request, on the loop."""


def _begin_in_child() -> None:
    """A process that was forked has neither the thread nor the requests of its parent."""
    _threads.cache_clear()
    collector_paused.forget()


os.register_at_fork(after_in_child=_begin_in_child)


def on_loop(ask: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `ask(*args)`, on the loop: how work aside reads what others may change."""
    loop = _place.loop
    if loop is None:
        return ask(*args)
    answer: Future[T] = Future()

    def answer_it() -> None:
        try:
            answer.set_result(ask(*args))
        except Exception as error:
            answer.set_exception(error)

    loop.call_soon_threadsafe(answer_it)
    while not answer.done():
        wait([answer], _SLICE)
        if not answer.done() and not loop.is_running():
            raise RuntimeError("the loop that this work was for has ended")
    return answer.result()
