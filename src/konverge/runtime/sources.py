"""Requests from outside of Kubernetes, for as long as the controller runs.

A source is the author's code and speaks to something that may be away. One that ends or raises is started again after a
back-off; it costs nothing but its own requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from konverge.observe.metrics import ControllerNumbers
from konverge.runtime.declare import Source
from konverge.runtime.keys import checked
from konverge.runtime.result import Request
from konverge.runtime.tasks.cancellation import authors_code
from konverge.runtime.tasks.restarts import Restarts

_log = logging.getLogger("konverge.controller")


async def listen(
    source: Source, add: Callable[[Any], None], numbers: ControllerNumbers, key: type[Any] = Request
) -> None:
    """Pass the requests of a source on. Ends only by cancellation."""
    loop = asyncio.get_running_loop()
    restarts = Restarts()
    while True:
        began = loop.time()
        problem = "it ended"
        try:
            with authors_code():
                async for request in source.requests():
                    add(checked(request, key))
        except Exception as error:  # the author's code, or what it speaks to
            problem = str(error) or type(error).__name__
            _log.error("%s: the source %s failed", numbers.name, source.name, exc_info=error)
        delay = restarts.next_pause(loop.time() - began)
        numbers.source_restarts[source.name] = numbers.source_restarts.get(source.name, 0) + 1
        numbers.sources_down[source.name] = problem
        _log.warning("%s: the source %s is started again in %.1f s: %s", numbers.name, source.name, delay, problem)
        await asyncio.sleep(delay)
        del numbers.sources_down[source.name]
