"""`/console/v1/load`: queue depth and request rates over time, for callers who may read the metrics of the cluster.

Where the cluster is in this process, its numbers are read every few seconds, which costs less than a request. Any other
API server is asked for its metrics, as the caller, and only while a page of theirs looks: these are long. What its
controllers have in their queues is known to themselves alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from konverge import clock
from konverge.client import ApiStatusError, Client
from konverge.client.call import Call as ApiCall
from konverge.console.answers import json_answer
from konverge.console.call import Call
from konverge.console.load.samples import EVERY, Reading, Samples
from konverge.console.rights import may
from konverge.service.problems import Problem
from konverge.wire.message import Response

METRICS = "/metrics"
LOOKED = 60.0
"""Seconds after a look in which it is taken for granted that there will be another."""
_KEPT = "load"
_REQUESTS = re.compile(rb"^apiserver_request_total\{([^}]*)\} (\S+)", re.MULTILINE)
_VERB = re.compile(rb'(?:^|,)verb="([^"]*)"')
_VERBS = {"POST": "create", "PUT": "update", "APPLY": "patch", "CONNECT": "connect"}
Read = Callable[[bool], Awaitable[Reading]]
"""The numbers of now; whether a page is open, so that it may cost something."""


class Load:
    """How busy a cluster in this process is.

    async with load.sampling(): ...
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._samples = Samples()
        self._looked = -LOOKED

    @asynccontextmanager
    async def sampling(self) -> AsyncIterator[None]:
        """Inside the block, a sample is taken every few seconds."""
        task = asyncio.create_task(self._sample(), name="konverge.console.load")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _sample(self) -> None:
        while True:
            await self.take()
            await asyncio.sleep(EVERY)

    async def take(self) -> None:
        """Take a sample."""
        now = clock.monotonic()
        reading = await self._read(now - self._looked < LOOKED)
        self._samples.add(clock.now(), now, reading)

    def look(self, kind: str) -> dict[str, Any]:
        self._looked = clock.monotonic()
        return {**self._samples.plots(kind), "missing": {}}


class LoadAnswers:
    """The console's side of it; `load` is None where the cluster is elsewhere."""

    def __init__(self, load: Load | None) -> None:
        self._load = load

    async def answer(self, call: Call) -> Response:
        """Raises a 403 for callers who may not read the metrics."""
        kind = call.query.get("kind", "")
        if self._load is None:
            return json_answer(await _elsewhere(call, kind))
        if not await may(call.client, nonResourceAttributes={"path": METRICS, "verb": "get"}):
            raise Problem(403, f"you may not get {METRICS} in this cluster", reason="Forbidden")
        return json_answer(self._load.look(kind))


async def _elsewhere(call: Call, kind: str) -> dict[str, Any]:
    """What a caller's own looks at an API server have found."""
    missing = {"queue": "elsewhere"}
    if kind:
        return {**Samples().plots(kind), "missing": missing}
    lock = call.session.kept.setdefault("load lock", asyncio.Lock())
    async with lock:
        kept = call.session.kept.setdefault(_KEPT, _Looked())
        assert isinstance(kept, _Looked)
        now = clock.monotonic()
        if now - kept.at >= EVERY:
            kept.at = now
            kept.reason = await _ask(call.client, kept.samples)
    reasons = {"verbs": kept.reason} if kept.reason else {}
    return {**kept.samples.plots(), "missing": {**missing, **reasons, "clients": kept.reason or "elsewhere"}}


class _Looked:
    """The samples of one caller."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.at = -EVERY
        self.reason = ""
        """Why there is nothing to see."""


async def _ask(client: Client, samples: Samples) -> str:
    try:
        page = (await client.caller.call(ApiCall("get", None, path=METRICS))).body
    except ApiStatusError as error:
        if error.code == 401:
            raise
        return "forbidden" if error.code == 403 else "unserved"
    verbs = requests_of(page)
    if not verbs:
        return "unserved"
    samples.add(clock.now(), clock.monotonic(), Reading({}, verbs, {}))
    return ""


def requests_of(page: bytes) -> dict[str, float]:
    """The requests in the metrics of an API server, by verb as roles name it.

    >>> requests_of(b'apiserver_request_total{code="200",verb="LIST"} 2\\napiserver_request_total{verb="POST"} 1')
    {'list': 2.0, 'create': 1.0}
    """
    totals: dict[str, float] = {}
    for labels, value in _REQUESTS.findall(page):
        named = _VERB.search(labels)
        if named is None:
            continue
        verb = named[1].decode(errors="replace")
        verb = _VERBS.get(verb, verb.lower())
        totals[verb] = totals.get(verb, 0.0) + float(value)
    return totals
