"""A manager as a program: logs, loop, signals, exit status.

The first signal asks for an orderly end. The second cancels what is under way, and the process ends within
`AT_ONCE` seconds whatever that does: a reconciler may hold the loop, or wait in a thread. A signal after that, also one
that arrives while the interpreter shuts down, ends the process on the spot. In each case the status is 128 and the
number of the signal, as a shell reports it, and no traceback is printed.

Upstream: SetupSignalHandler (controller-runtime's pkg/manager/signals), where the second signal is `os.Exit(1)`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from konverge.cache.informer import CacheTooLarge
from konverge.client import ClientError
from konverge.observe import logs
from konverge.runtime.alongside import first_error
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import ConfigurationError
from konverge.runtime.elector import LeadershipLost
from konverge.runtime.rbac import MissingPermissions
from konverge.runtime.tasks.hooks import StartupFailed
from konverge.wire.errors import WireError

if TYPE_CHECKING:
    from konverge.runtime.manager import Manager

MENDABLE = (
    ClientError, WireError, CacheNotSynced, CacheTooLarge, ConfigurationError, LeadershipLost, MissingPermissions,
    StartupFailed,
)  # fmt: skip
"""What a user can mend, so that its message says more than a traceback."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)
AT_ONCE = 1.0
"""Seconds that the tasks of a process have to end after a second signal."""

_log = logging.getLogger("konverge.manager")


def run_program(manager: Manager) -> None:
    """Run until a signal. What a user can mend ends the process with one line and status 1."""
    handler: logging.Handler | None = None
    try:
        log = manager.config.log
        handler = logs.set_up_unless_done(log.level, log.form)
        run_until_signal(serve_until_signal(manager))
    except* MENDABLE as group:
        _end(manager.name, first_error(group), handler)


def _end(name: str, error: BaseException, handler: logging.Handler | None) -> NoReturn:
    if handler is not None and isinstance(handler.formatter, logs.JsonFormatter):
        _log.error("%s: %s", name, error)
        sys.exit(1)
    sys.exit(f"{name}: {error}")


def run_until_signal(program: Coroutine[Any, Any, None]) -> None:
    """Run a whole program, which awaits `serve_until_signal`, on the fastest loop there is."""
    try:
        with asyncio.Runner(loop_factory=fast_loop) as runner:
            runner.run(program)
    except KeyboardInterrupt:  # before the program had its own handlers
        sys.exit(128 + signal.SIGINT)


async def serve_until_signal(manager: Manager) -> None:
    """Serve in a program that has an event loop already: the first signal asks for an orderly shutdown.

    Raises SystemExit when there was a second one.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    again: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if not stop.is_set():
            _log.info("%s: finishing the queued keys", number.name)
            stop.set()
        elif main is not None:
            _log.warning("%s again: ending at once", number.name)
            again.append(number)
            _end_on_signals(loop)
            _end_process_within(AT_ONCE, 128 + number)
            main.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    manager.dedicated = True
    try:
        await manager.serve(stop)
    finally:
        if stop.is_set():
            _end_on_signals(loop)
        if again:  # whatever the cancellation led to
            raise SystemExit(128 + again[0])


def _end_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """From now on a signal ends the process at once: the loop may be blocked, or closing."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # removed, but not set yet, SIGINT would be a KeyboardInterrupt
    for number in SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, _end_now)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _end_now(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


def _end_process_within(seconds: float, status: int) -> None:
    timer = threading.Timer(seconds, os._exit, [status])
    timer.daemon = True
    timer.start()


def fast_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
