"""Counts the requests that a client makes: by answer, and how long they took."""

from __future__ import annotations

from collections import defaultdict

from konverge import clock
from konverge.client.call import METHODS, Call, Caller
from konverge.client.client import Client
from konverge.client.errors import ApiStatusError, ClientError
from konverge.observe.metrics import Histogram
from konverge.wire.message import Response, Stream

LATENCY_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestNumbers:
    """(code, method) -> requests; `<error>` is the code of those that got no answer, as client-go has it."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        self.counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.durations: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(LATENCY_BUCKETS))


class Counted(Client):
    """A client whose requests are counted."""

    def __init__(self, inner: Client, numbers: RequestNumbers) -> None:
        self._stand_on(CountedCalls(inner.caller, numbers), inner.mapper)


class CountedCalls:
    def __init__(self, inner: Caller, numbers: RequestNumbers) -> None:
        self._inner = inner
        self._numbers = numbers

    @property
    def near(self) -> bool:
        return self._inner.near

    async def call(self, call: Call) -> Response:
        began = clock.monotonic()
        code = "<error>"
        try:
            response = await self._inner.call(call)
            code = str(response.status)
            return response
        except ApiStatusError as error:
            code = str(error.code)
            raise
        finally:
            self._note(call, code, clock.monotonic() - began)

    async def stream(self, call: Call) -> Stream:
        try:
            stream = await self._inner.stream(call)
        except ClientError as error:
            self._numbers.counts[str(getattr(error, "code", "<error>")), "GET"] += 1
            raise
        self._numbers.counts[str(stream.status), "GET"] += 1
        return stream

    def _note(self, call: Call, code: str, seconds: float) -> None:
        self._numbers.counts[code, METHODS[call.verb]] += 1
        self._numbers.durations[METHODS[call.verb]].observe(seconds)
