"""A manager as a program: loop, signals, exit status."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING

from konverge.cache.informer import CacheTooLarge
from konverge.client import ClientError
from konverge.runtime.alongside import first_error
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import ConfigurationError
from konverge.runtime.elector import LeadershipLost
from konverge.wire.errors import WireError

if TYPE_CHECKING:
    from konverge.runtime.manager import Manager

_log = logging.getLogger("konverge.manager")


def run_program(manager: Manager) -> None:
    """Run until a signal. The first asks for an orderly shutdown, the second ends the process at once."""
    with asyncio.Runner(loop_factory=fast_loop) as runner:
        try:
            runner.run(serve_until_signal(manager))
        except* (ClientError, WireError, CacheNotSynced, CacheTooLarge, ConfigurationError, LeadershipLost) as group:
            sys.exit(f"{manager.name}: {first_error(group)}")
        except* Exception as group:
            from konverge.runtime.manager import MissingPermissions

            if isinstance(first_error(group), MissingPermissions):
                sys.exit(f"{manager.name}: {first_error(group)}")
            raise


async def serve_until_signal(manager: Manager) -> None:
    """Serve in a program that has an event loop already: the first signal asks for an orderly shutdown."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()

    def on_signal(name: str) -> None:
        if stop.is_set() and main is not None:
            _log.warning("%s again: ending at once", name)
            main.cancel()
        else:
            _log.info("%s: finishing the queued keys", name)
            stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number.name)
    manager.dedicated = True
    await manager.serve(stop)


def fast_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
