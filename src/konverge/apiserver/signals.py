"""A server as a process: runs until SIGTERM, SIGINT, or the end of its terminal (SIGHUP)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DESCRIPTORS = 65_536


def run_until_signal(
    serve: Callable[[asyncio.Event], Awaitable[None]], *, cleanup: Callable[[], object] | None = None
) -> None:
    """Run `serve(stopping)`, on uvloop where there is one; the event is set when the process is to end.

    A second signal cancels what is left to do; then SystemExit is raised, with the status of a process that this signal
    ended. `cleanup` is called after the loop, and no signal interrupts it.
    """
    _allow_many_connections()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    if before[signal.SIGHUP] is signal.SIG_IGN:  # nohup: it is to outlive its terminal
        del before[signal.SIGHUP]
    try:
        try:
            import uvloop
        except ImportError:
            second = asyncio.run(_serve_until_signal(serve, before))
        else:
            second = uvloop.run(_serve_until_signal(serve, before))
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)
        if cleanup is not None:
            cleanup()
        for number, handler in before.items():
            signal.signal(number, handler)
    if second:
        sys.exit(128 + second)


def _allow_many_connections() -> None:
    """As many file descriptors as the system grants: each watch takes one, and the usual soft limit is a thousand."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve_until_signal(
    serve: Callable[[asyncio.Event], Awaitable[None]], signals: Iterable[signal.Signals]
) -> int:
    """The number of the second signal, or 0."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    second: list[int] = []

    def on_signal(number: int) -> None:
        if not stopping.is_set():
            stopping.set()
        elif not second and main is not None:
            second.append(number)
            main.cancel()

    for number in signals:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await serve(stopping)
    except BaseException:
        if not second:
            raise
    finally:
        # The loop takes its handlers away when it closes: a signal at that moment would be an exception anywhere.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    return second[0] if second else 0
