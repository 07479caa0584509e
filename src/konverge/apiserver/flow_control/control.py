"""Priority and fairness of a server: the configuration as it is stored, and what the request path asks.

To find the flow of a request costs a look into a dictionary; whether it may begin is one comparison (`Level.free`).
Everything else happens to requests that wait.

Upstream: apiserver/pkg/util/flowcontrol/apf_controller.go, apiserver/pkg/server/filters/priority-and-fairness.go.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

from konverge import clock
from konverge.apiserver.flow_control import shares
from konverge.apiserver.flow_control.matching import flow_of, matches
from konverge.apiserver.flow_control.queues import Limits, Queues, Rejected, Ticket
from konverge.apiserver.flow_control.retry_after import RetryAfter
from konverge.apiserver.object_access import Objects
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.strategy import Obj

GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS, LEVELS = "flowschemas", "prioritylevelconfigurations"
MASTERS = "system:masters"
WIDEST = 10
"""Seats of the widest request. Upstream: MaximumSeatsLimit."""
ADJUST_EVERY = 10.0
"""Seconds. Upstream: borrowingAdjustmentPeriod."""
UNLIMITED = 1 << 30
_LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources whose requests last as long as the client likes; they are not counted. Upstream: longRunningFunc."""
_MOST_FLOWS = 8192
"""Which are remembered."""


class TooMany(Exception):
    """A request is refused; it may come again after so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Level:
    """A priority level."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self.name = name
        self.free = UNLIMITED
        """Seats that a request can have at once."""
        self.widest = WIDEST
        """Seats of a request, at most."""
        self.uid = ""
        self.exempt = True
        self.share = shares.Share(0, 0, 0)
        self.demand = shares.Demand(now)
        self.queues = Queues(Limits(0), now, self._changed)
        self.retry_after = RetryAfter()

    def configure(self, share: shares.Share, limits: Limits | None) -> None:
        """Without limits it is exempt."""
        self.exempt, self.share = limits is None, share
        if limits is not None:
            self.widest = max(1, min(WIDEST, share.nominal // limits.hand)) if limits.hand else WIDEST
            self.queues.configure(limits)
        self._changed()

    def _changed(self) -> None:
        self.free = UNLIMITED if self.exempt else self.queues.free
        self.demand.set(self.queues.demand)

    def reject(self, schema: Schema, reason: str) -> int:
        """Count a request that is refused; the result is after how many seconds it may come again."""
        schema.rejected[reason] += 1
        self.retry_after.note(int(clock.now()))
        return self.retry_after.seconds


class Schema:
    """A FlowSchema with its level."""

    __slots__ = ("dispatched", "headers", "level", "name", "rejected", "spec")

    def __init__(self, name: str, uid: str, spec: Obj, level: Level) -> None:
        self.name = name
        self.spec = spec
        self.level = level
        self.headers = [
            (b"x-kubernetes-pf-flowschema-uid", uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        ]
        self.dispatched = 0
        """Requests that have begun."""
        self.rejected: Counter[str] = Counter()
        """Those that were refused, by the reason."""


class Flow:
    """Requests that are alike: they share a hand of queues."""

    __slots__ = ("headers", "is_limited", "level", "number", "schema")

    def __init__(self, schema: Schema, number: int) -> None:
        self.schema = schema
        self.headers = schema.headers
        self.level = schema.level
        self.is_limited = not schema.level.exempt
        self.number = number


class FlowControl:
    """The levels and schemas of a server."""

    def __init__(self, store: Store, objects: Objects, seats: int) -> None:
        self._store = store
        self._objects = objects
        self._seats = seats
        self._flows: dict[tuple[object, ...], Flow] = {}
        self._exempt: Flow | None = None
        """Of the cluster's masters: the schema with the precedence 1, which no client can change."""
        self._schemas: list[Schema] | None = None
        """By precedence; None when the configuration has changed."""
        self._counted: dict[str, Schema] = {}
        """The schemas by name, also those of before: what they have counted goes on."""
        self.levels: dict[str, Level] = {}
        self._adjusted = clock.monotonic()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._store.subscribe(f"{GROUP}/{SCHEMAS}", self._changed)
        self._store.subscribe(f"{GROUP}/{LEVELS}", self._changed)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _changed(self, event: Event) -> None:
        self._schemas = self._exempt = None
        self._flows.clear()

    # --- of each request

    def flow(self, user: User, info: RequestInfo) -> Flow | None:
        """The flow of a request; None for one that is not counted."""
        if info.subresource and info.subresource in _LONG_RUNNING and info.verb != "watch":
            return None
        groups = user.groups
        if self._exempt is not None and MASTERS in groups:
            return self._exempt
        about = (info.group, info.plural, info.subresource, info.namespace) if info.is_resource else info.path
        key = (user.name, groups, info.verb, about)
        return self._flows.get(key) or self._find(key, user, info)

    def _find(self, key: tuple[object, ...], user: User, info: RequestInfo) -> Flow | None:
        schemas = self._schemas
        if schemas is None:
            schemas = self._configure()
        for schema in schemas:
            if matches(schema.spec, user, info):
                flow = Flow(schema, flow_of(schema.spec, schema.name, user, info))
                break
        else:
            return None
        if len(self._flows) >= _MOST_FLOWS:
            self._flows.clear()
        self._flows[key] = flow
        if schema.name == "exempt":
            self._exempt = flow
        return flow

    def seats(self, flow: Flow, info: RequestInfo) -> int:
        """How many a request needs: a list one for each hundred objects that are stored."""
        if info.verb != "list" or info.name:
            return 1
        table = self._store.tables.get(f"{info.group}/{info.plural}")
        count = len(table.records) if table is not None else 0
        return max(1, min(flow.level.widest, -(-count // 100)))

    def occupy(self, flow: Flow, info: RequestInfo) -> Callable[[], None]:
        """A request that has begun waits for something: it takes its seats. The result gives them back."""
        queues = flow.level.queues
        return partial(queues.leave, queues.occupy(flow.number, self.seats(flow, info)))

    async def turn(self, flow: Flow, info: RequestInfo, seconds: float) -> Callable[[], None]:
        """Until a request may begin; the result gives its seats back. Raises TooMany, also after so many seconds."""
        queues, begun = flow.level.queues, asyncio.Event()
        try:
            ticket = queues.enter(flow.number, self.seats(flow, info), begun.set)
            if ticket.started is None:
                self._adjust_soon()
                await self._wait(queues, ticket, begun, seconds)
        except Rejected as error:
            raise TooMany(flow.level.reject(flow.schema, error.reason)) from None
        return partial(queues.leave, ticket)

    async def _wait(self, queues: Queues, ticket: Ticket, begun: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await begun.wait()
        except TimeoutError:
            if ticket.started is None:
                queues.leave(ticket)
                raise Rejected("time-out") from None
        except BaseException:
            queues.leave(ticket)
            raise

    # --- the configuration

    def _configure(self) -> list[Schema]:
        self._configure_levels()
        schemas = []
        for obj in self._objects.scan(GROUP, SCHEMAS):
            spec, name = obj["spec"], obj["metadata"]["name"]
            level = self.levels.get(spec["priorityLevelConfiguration"]["name"])
            if level is not None:  # one whose level does not exist is not used
                schema = Schema(name, obj["metadata"]["uid"], spec, level)
                if (before := self._counted.get(name)) is not None:
                    schema.dispatched, schema.rejected = before.dispatched, before.rejected
                self._counted[name] = schema
                schemas.append(schema)
        schemas.sort(key=lambda schema: (schema.spec.get("matchingPrecedence") or 0, schema.name))
        self._schemas = schemas
        return schemas

    def _configure_levels(self) -> None:
        stored = {obj["metadata"]["name"]: obj for obj in self._objects.scan(GROUP, LEVELS)}
        parts = {name: _part(obj["spec"]) for name, obj in stored.items()}
        whole = sum(part.get("nominalConcurrencyShares") or 0 for part in parts.values())
        for gone in self.levels.keys() - stored.keys():  # requests of it end as they began
            del self.levels[gone]
        for name, obj in stored.items():
            level = self.levels.get(name)
            if level is None:
                level = self.levels[name] = Level(name, clock.monotonic)
            level.uid = obj["metadata"]["uid"]
            part = parts[name]
            asked = (part.get("nominalConcurrencyShares") or 0, whole, part.get("lendablePercent") or 0)
            share = shares.share(self._seats, *asked, part.get("borrowingLimitPercent"))
            limited = obj["spec"].get("type") != "Exempt"
            level.configure(share, _limits(share.nominal, part) if limited else None)

    # --- who needs less lends to who needs more

    def _adjust_soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._adjusted + ADJUST_EVERY), self._adjust)

    def _adjust(self) -> None:
        self._timer = None
        self._adjusted = clock.monotonic()
        levels = [level for level in self.levels.values() if not level.exempt]
        seats = shares.lent([level.share for level in levels], [level.demand.read() for level in levels])
        for level, count in zip(levels, seats, strict=True):
            before = level.queues.limits
            level.configure(level.share, Limits(count, before.queues, before.hand, before.length))
        if any(level.queues.waiting for level in levels):
            self._adjust_soon()

    # --- metrics

    def counted(self) -> list[Schema]:
        """All schemas that have counted requests, by name."""
        return [self._counted[name] for name in sorted(self._counted)]


def _part(spec: Obj) -> Obj:
    part: Obj = spec.get("exempt" if spec.get("type") == "Exempt" else "limited") or {}
    return part


def _limits(seats: int, part: Obj) -> Limits:
    response = part.get("limitResponse") or {}
    queuing = response.get("queuing")
    if response.get("type") != "Queue" or not queuing:
        return Limits(seats)
    return Limits(seats, queuing["queues"], queuing["handSize"], queuing["queueLengthLimit"])
