"""Faults in the answers of a simulated server, set by a test or drawn by chance."""

from __future__ import annotations

import asyncio
from enum import Enum
from random import Random

import msgspec

from konverge.wire.errors import ConnectionLost
from konverge.wire.message import Headers, Response

_SLOW = 60.0
"""Seconds: longer than any timeout of the operator."""
_OVERSIZED = 2 << 20
"""Bytes: more than the operator reads (`answers.MAX_BODY`)."""
_HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


class Fault(Enum):
    FORBIDDEN = "forbidden"
    ERROR = "error"
    GARBAGE = "garbage"
    SLOW = "slow"
    OVERSIZED = "oversized"
    HTML = "html"
    NESTED = "nested"
    RESET = "reset"


class AnswerFaults(msgspec.Struct):
    """By pod; an empty name means all pods."""

    rng: Random
    rate: float = 0.0
    """The fraction of all answers that fail by chance."""
    faults: dict[str, Fault] = msgspec.field(default_factory=dict)
    lags: dict[str, float] = msgspec.field(default_factory=dict)
    """Seconds before every answer."""

    async def before(self, pod: str) -> Response | None:
        """The answer in place of the server's, if any. Raises the error of a broken connection."""
        lag = self.lags.get(pod) or self.lags.get("", 0.0)
        if lag:
            await asyncio.sleep(lag)
        fault = self.faults.get(pod) or self.faults.get("")
        if fault is None and self.rate and self.rng.random() < self.rate:
            fault = self.rng.choice(list(Fault))
        return None if fault is None else await _faulty_answer(fault)


async def _faulty_answer(fault: Fault) -> Response | None:
    json = Headers.of({"content-type": "application/json"})
    match fault:
        case Fault.SLOW:
            await asyncio.sleep(_SLOW)
            return None
        case Fault.RESET:
            raise ConnectionLost("the simulated server closed the connection")
        case Fault.FORBIDDEN:
            return Response(403, json, b'{"status":403,"error":"Forbidden","message":"token invalid!"}')
        case Fault.ERROR:
            return Response(500, Headers.of({"content-type": "text/plain"}), b"caused: io exception;")
        case Fault.HTML:
            return Response(200, Headers.of({"content-type": "text/html"}), _HTML)
        case Fault.GARBAGE:
            return Response(200, json, b'{"code":200,"data":[{"ip":7,"state":{"UP":')
        case Fault.NESTED:
            return Response(200, json, b'{"data":' + b"[" * 100_000)
        case Fault.OVERSIZED:
            return Response(200, json, b'{"code":200,"message":"' + b"x" * _OVERSIZED + b'","data":[]}')
