"""How busy a cluster of `konverge up` is, for its console: the queues of its controllers, and the requests it gets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from konverge.apiserver import ApiServer
from konverge.apiserver.request.counts import RequestCounts
from konverge.cli.operator_stories import ANSWER_WITHIN, StoryPlace, page_of
from konverge.console.load.samples import Queue, Reading
from konverge.console.load.watching import Read
from konverge.objects.resource import Resource
from konverge.runtime import Manager

_DEPTH = re.compile(r'^controller_workqueue_depth\{controller="([^"]*)"\} (\S+)', re.MULTILINE)


def load_of(
    server: ApiServer, managers: Callable[[], Iterable[Manager]], places: Callable[[], list[StoryPlace]]
) -> Read:
    """From now on the server counts its requests. Operators in processes of their own are asked while a page looks."""
    counts = server.extensions.counts = RequestCounts()

    async def read(looked_at: bool) -> Reading:
        queues = {
            Queue(engine.controller.name, _kind(engine.controller.kind.resource)): engine.numbers.queue.take_peak()
            for manager in managers()
            for engine in manager.engines.values()
        }
        elsewhere = await asyncio.gather(*(_depths(place) for place in places())) if looked_at else []
        for depths in elsewhere:
            queues |= depths
        return Reading(queues, dict(counts.verbs), dict(counts.programs))

    return read


def _kind(resource: Resource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


async def _depths(place: StoryPlace) -> dict[Queue, int]:
    """Of an operator in another process; none where it does not answer: it may be starting again."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            page = await page_of(place, "/metrics")
    except (OSError, ValueError, TimeoutError):
        return {}
    return {Queue(name): int(float(depth)) for name, depth in _DEPTH.findall(page.decode(errors="replace"))}
