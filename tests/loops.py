"""The loops of tests: asyncio's own checks of debug mode, without its stacks.

Debug mode notes a stack for every future, handle and coroutine, which makes a test several times slower and proves
nothing. What it proves (nothing but `call_soon_threadsafe` comes from another thread; callbacks are no coroutines) is
checked here for a fraction of a microsecond. Where did a task come from? `PYTHONASYNCIODEBUG=1` brings the stacks back.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from konverge.sim.loop import VirtualLoop


class _Checked(asyncio.BaseEventLoop):
    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        self._check_thread()  # type: ignore[attr-defined]
        self._check_callback(callback, "call_soon")  # type: ignore[attr-defined]
        return super().call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        self._check_thread()  # type: ignore[attr-defined]
        self._check_callback(callback, "call_at")  # type: ignore[attr-defined]
        return super().call_at(when, callback, *args, context=context)


class RealTimeLoop(_Checked, asyncio.SelectorEventLoop):
    """On the machine's clock, with sockets and processes."""


class VirtualTimeLoop(_Checked, VirtualLoop):
    """On virtual time."""

    elsewhere = 0.0
    """Seconds of CPU time for what a loop on real time would have given to a thread."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        start = time.thread_time()
        try:
            return super().run_in_executor(executor, func, *args)
        finally:
            self.elsewhere += time.thread_time() - start
