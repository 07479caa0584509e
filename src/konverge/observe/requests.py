"""Counts the requests that a client makes, by answer, and how long they took."""

from __future__ import annotations

from konverge import clock
from konverge.client.call import METHODS, Call, Caller
from konverge.client.client import Client
from konverge.client.errors import ApiStatusError, ClientError
from konverge.observe.metrics import RequestNumbers
from konverge.wire.message import Response, Stream


class Counted(Client):
    """A client whose requests are counted."""

    def __init__(self, inner: Client, numbers: RequestNumbers) -> None:
        self._use_caller(CountedCalls(inner.caller, numbers), inner.mapper)


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
