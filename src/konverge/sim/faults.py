"""Faults: what can go wrong between the parts of a cluster and its API server, and with the cluster itself.

A `Plan` is a list of faults, each at its place: exchanges are counted as they pass through the faulty transport, and
the world's faults have a time. A seed makes a plan; a plan can be written down, cut shorter, and run again: with the
seed of the loop it gives the same history, bit for bit.

`Faulty` is the transport, `Chaos` the service that performs the faults of the world at their times.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from konverge import clock
from konverge.client import ClientError, MergePatch, NotFound
from konverge.objects import times
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.wire.errors import ConnectFailed, ConnectionLost
from konverge.wire.message import Headers, Request, Response, Stream, Transport

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster


class Kind(Enum):
    """What goes wrong. The first group is about one exchange, the second about the world."""

    CONFLICT = "409"
    GONE = "410"
    BUSY = "429"
    ERROR = "500"
    UNAVAILABLE = "503"
    LOST_BEFORE = "lost-before"
    LOST_AFTER = "lost-after"
    SLOW = "slow"
    CUT = "cut"
    """A watch breaks off after some events."""
    LATE = "late"
    """The events of a watch come late."""
    TWICE = "twice"
    """The events of a watch come twice."""

    RESTART = "restart"
    """The API server is away for a while, and has forgotten its history when it is back."""
    LEADER = "leader"
    NODE = "node"
    CLOCK = "clock"


WORLD = frozenset((Kind.RESTART, Kind.LEADER, Kind.NODE, Kind.CLOCK))
WATCHES = frozenset((Kind.CUT, Kind.LATE, Kind.TWICE))
_ANSWERS = {
    Kind.CONFLICT: (409, "Conflict", "the object has been modified; please apply your changes to the latest version"),
    Kind.GONE: (410, "Expired", "the provided resource version is too old"),
    Kind.BUSY: (429, "TooManyRequests", "too many requests, please try again later"),
    Kind.ERROR: (500, "InternalError", "an injected fault"),
    Kind.UNAVAILABLE: (503, "ServiceUnavailable", "an injected fault"),
}


class Fault(msgspec.Struct, frozen=True, order=True):
    """One fault: `at` is the number of an exchange, or seconds for a fault of the world; `amount` is what it needs."""

    at: float
    kind: Kind
    amount: float = 0.0

    def __str__(self) -> str:
        amount = f"({self.amount:g})" if self.amount else ""
        return f"{self.kind.value}{amount}@{self.at:g}"


class PlanError(ValueError):
    """A plan that cannot be read."""


_FAULT = re.compile(r"([a-z0-9-]+)(?:\(([0-9.-]+)\))?@([0-9.]+)")


class Plan(msgspec.Struct, frozen=True):
    """All faults of a run, in order."""

    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return " ".join(str(fault) for fault in self.faults) or "no faults"

    @classmethod
    def read(cls, text: str) -> Plan:
        """
        >>> str(Plan.read("lost-after@17 restart(5)@12.5"))
        'restart(5)@12.5 lost-after@17'
        """
        lines = []
        for word in text.split():
            match = _FAULT.fullmatch(word)
            kinds = {kind.value: kind for kind in Kind}
            if match is None or match[1] not in kinds:
                raise PlanError(
                    f"{word!r} is no fault; write one as KIND@PLACE or KIND(AMOUNT)@PLACE: {', '.join(kinds)}"
                )
            lines.append(Fault(float(match[3]), kinds[match[1]], float(match[2] or 0)))
        return cls(tuple(sorted(lines, key=lambda fault: fault.at)))

    @classmethod
    def of(cls, seed: int, *, faults: int = 12, exchanges: int = 600, seconds: float = 120.0) -> Plan:
        """The plan of a seed: some faults of each sort, spread over the first exchanges and the first minutes."""
        rng = clock.seeded(seed)
        made = []
        for _ in range(rng.randint(faults // 2, faults)):
            kind = rng.choice(list(Kind))
            place = round(rng.uniform(0, seconds), 2) if kind in WORLD else float(rng.randrange(exchanges))
            made.append(Fault(place, kind, _amount(kind, rng)))
        return cls(tuple(sorted(made, key=lambda fault: (fault.at, fault.kind.value))))


def _amount(kind: Kind, rng: Random) -> float:
    match kind:
        case Kind.SLOW | Kind.LATE:
            return round(rng.uniform(0.1, 8.0), 2)
        case Kind.CUT:
            return float(rng.randrange(0, 5))
        case Kind.RESTART:
            return round(rng.uniform(1.0, 20.0), 2)
        case Kind.NODE:
            return round(rng.uniform(5.0, 400.0), 2)
        case Kind.CLOCK:
            return round(rng.uniform(-300.0, 300.0), 2)
    return 0.0


class Faulty:
    """A `Transport` that misbehaves by plan. `happened` lists what it did, in order."""

    def __init__(self, inner: Transport, faults: Iterable[Fault]) -> None:
        self._inner = inner
        self._due: dict[int, list[Fault]] = {}
        for fault in faults:
            if fault.kind not in WORLD:
                self._due.setdefault(int(fault.at), []).append(fault)
        self._streams: dict[_FaultyStream, None] = {}  # no set: who is cut first must not depend on addresses
        self.exchanges = 0
        self.away = False
        """The API server cannot be reached at all."""
        self.happened: list[str] = []

    async def send(self, request: Request) -> Response:
        fault = self._next(request)
        if fault is None or fault.kind in WATCHES:
            return await self._inner.send(request)
        await self._before(fault)
        refused = _refused(fault)
        if refused is not None:
            return refused
        response = await self._inner.send(request)
        if fault.kind is Kind.LOST_AFTER:
            raise ConnectionLost("an injected fault: the answer was lost")
        return response

    async def stream(self, request: Request) -> Stream:
        fault = self._next(request)
        if fault is None:
            return self._wrap(await self._inner.stream(request), None)
        await self._before(fault)
        refused = _refused(fault)
        if refused is not None:
            return _Refusal(refused)
        return self._wrap(await self._inner.stream(request), fault)

    def cut_all(self) -> None:
        """Every stream that is open breaks off."""
        for stream in list(self._streams):
            stream.cut()

    def _wrap(self, stream: Stream, fault: Fault | None) -> _FaultyStream:
        return _FaultyStream(stream, fault, self._streams)

    def _next(self, request: Request) -> Fault | None:
        if self.away:
            raise ConnectFailed("an injected fault: the API server is away")
        number = self.exchanges
        self.exchanges += 1
        due = self._due.get(number)
        if not due:
            return None
        self.happened.append(f"{due[0]} {request.method} {request.target.partition('?')[0]}")
        return due[0]

    async def _before(self, fault: Fault) -> None:
        if fault.kind is Kind.SLOW:
            await asyncio.sleep(fault.amount)
        if fault.kind is Kind.LOST_BEFORE:
            raise ConnectionLost("an injected fault: the connection was lost")


def _refused(fault: Fault) -> Response | None:
    answer = _ANSWERS.get(fault.kind)
    if answer is None:
        return None
    code, reason, message = answer
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    headers = Headers([(b"content-type", b"application/json")])
    if fault.kind is Kind.BUSY:
        headers.add("retry-after", "1")
    return Response(code, headers, msgspec.json.encode({**body, "message": message, "reason": reason, "code": code}))


class _Refusal:
    """An answer that is no stream, in the place of one."""

    def __init__(self, response: Response) -> None:
        self.status, self.headers = response.status, response.headers
        self._body = response.body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body

    async def aclose(self) -> None:
        """There is nothing to close."""


class _FaultyStream:
    """A stream whose chunks come late, twice, or not any more."""

    def __init__(self, inner: Stream, fault: Fault | None, streams: dict[_FaultyStream, None]) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner = inner
        self._fault = fault
        self._streams = streams
        self._cut = False
        self._reader: asyncio.Task[Any] | None = None
        """Who waits for the next chunk."""
        streams[self] = None

    def cut(self) -> None:
        """Break off, also while a caller waits."""
        if not self._cut:
            self._cut = True
            if self._reader is not None:
                self._reader.cancel()

    def _is_cut(self) -> bool:
        return self._cut

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        chunks, seen, fault = aiter(self._inner), 0, self._fault
        while True:
            if fault is not None and fault.kind is Kind.CUT and seen > fault.amount:
                raise ConnectionLost("an injected fault: the watch broke off")
            chunk = await self._next_chunk(chunks)
            if chunk is None:
                return
            seen += 1
            if fault is not None and fault.kind is Kind.LATE:
                await asyncio.sleep(fault.amount)
            yield chunk
            if fault is not None and fault.kind is Kind.TWICE and chunk.endswith(b"\n"):
                yield chunk

    async def _next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk, None at the end; raises when the stream is cut meanwhile."""
        reader = asyncio.current_task()
        if not self._cut and reader is not None:
            self._reader = reader
            try:
                return await anext(chunks, None)
            except asyncio.CancelledError:
                if not self._is_cut() or reader.uncancel():
                    raise  # another task has ended the reader
            finally:
                self._reader = None
        raise ConnectionLost("an injected fault: the connection was lost")

    async def read(self) -> bytes:
        return await self._inner.read()

    async def aclose(self) -> None:
        self._streams.pop(self, None)
        await self._inner.aclose()


LEASE, SPACE = "kube-controller-manager", "kube-system"


class Chaos:
    """A service that performs what a plan has for the world."""

    name = "chaos"

    def __init__(self, cluster: Cluster, transport: Faulty, plan: Plan) -> None:
        self._cluster = cluster
        self._transport = transport
        self._faults = [fault for fault in plan.faults if fault.kind in WORLD]
        self.over = asyncio.Event()

    async def run(self) -> None:
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for fault in self._faults:
                await asyncio.sleep(max(began + fault.at - asyncio.get_running_loop().time(), 0))
                self._transport.happened.append(str(fault))
                group.create_task(self._perform(fault), name=str(fault))
        self.over.set()

    async def _perform(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.RESTART:
                await self.restart(fault.amount)
            case Kind.NODE:
                await self._lose_a_node(fault)
            case Kind.CLOCK:
                self._cluster.clock.jump(fault.amount)
            case _:
                await self._take_leadership()

    async def restart(self, seconds: float) -> None:
        """Away for a while. What was stored is kept; the history, which a server has in memory, is not."""
        self._transport.away = True
        self._transport.cut_all()
        store = self._cluster.server.store
        store.compact(store.revision)
        await asyncio.sleep(seconds)
        self._transport.away = False

    async def _lose_a_node(self, fault: Fault) -> None:
        names = sorted(self._cluster.node_names)
        if not names:
            return
        name = names[int(fault.at * 100) % len(names)]
        self._cluster.lose_node(name)
        await asyncio.sleep(fault.amount)
        with suppress(NotFound):
            await self._cluster.recover_node(name)

    async def _take_leadership(self) -> None:
        """Another holder has the Lease from now on, and never renews it."""
        spec = {"holderIdentity": "another-holder", "renewTime": times.micro_now()}
        with suppress(ClientError):
            await self._cluster.client.patch(Lease, LEASE, MergePatch({"spec": spec}), SPACE)
