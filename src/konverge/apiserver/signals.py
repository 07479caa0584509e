"""A server as a process: runs until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

_DESCRIPTORS = 65_536


def run_until_signal(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `serve(stopping)`, on uvloop where there is one; the event is set when the process is to end."""
    _allow_many_connections()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve_until_signal(serve))
    else:
        uvloop.run(_serve_until_signal(serve))


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


async def _serve_until_signal(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    await serve(stopping)
