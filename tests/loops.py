"""The loops of tests: asyncio's debug mode below the runtime, and its checks without its stacks from there on.

Debug mode notes a stack for every future, handle and coroutine. That costs the tests of the lower layers a few seconds
together, and those of the runtime and of whole clusters as much as everything else they do, without proving anything:
what debug mode proves (nothing but `call_soon_threadsafe` comes from another thread; callbacks are no coroutines) is
checked by these loops in any case, for a fraction of a microsecond. Where did a task come from?
`PYTHONASYNCIODEBUG=1` brings the stacks to every test.
"""

from __future__ import annotations

import asyncio
import functools
import time
from threading import get_ident
from typing import Any, ClassVar

from konverge.sim.loop import VirtualLoop
from tests.blocking import Elsewhere

_DEBUGGED = frozenset({"wire", "objects", "client", "cache", "workqueue", "observe"})


def in_debug_mode(test: str) -> bool | None:
    """Whether this test (by its id) runs in asyncio's debug mode; None: as `PYTHONASYNCIODEBUG` says.

    >>> in_debug_mode("tests/wire/test_pool.py::test_reuses"), in_debug_mode("tests/kube/test_jobs.py::test_retries")
    (True, None)
    """
    folders = test.partition("::")[0].split("/")
    return True if folders[0] == "tests" and folders[1] in _DEBUGGED else None


class _Checked(asyncio.BaseEventLoop):
    _checked: ClassVar[set[Any]] = set()
    """The code of functions, and the types of other callables, that are no coroutines: asked once, not every time."""

    _thread_id: int | None

    def _check(self, callback: Any, what: Any, method: str) -> None:
        self._check_thread()  # type: ignore[attr-defined]
        self._check_callback(callback, method)  # type: ignore[attr-defined]
        if what is not functools.partial:  # which is what its function is
            self._checked.add(what)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        what = getattr(callback, "__code__", None) or type(callback)
        if what not in self._checked or self._thread_id != get_ident():
            self._check(callback, what, "call_soon")
        return super().call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        what = getattr(callback, "__code__", None) or type(callback)
        if what not in self._checked or self._thread_id != get_ident():
            self._check(callback, what, "call_at")
        return super().call_at(when, callback, *args, context=context)


class RealTimeLoop(_Checked, asyncio.SelectorEventLoop):
    """On the machine's clock, with sockets and processes."""


class VirtualTimeLoop(_Checked, VirtualLoop):
    """On virtual time."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        start = time.thread_time()
        try:
            return super().run_in_executor(executor, func, *args)
        finally:
            Elsewhere.seconds += time.thread_time() - start
