"""A server as a process: runs until it is told to end by SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable


def run(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `serve(stopping)`, on uvloop where there is one; the event is set when the process shall end."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_until_told(serve))
    else:
        uvloop.run(_until_told(serve))


async def _until_told(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    await serve(stopping)
