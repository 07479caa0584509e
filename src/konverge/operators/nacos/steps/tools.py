"""What the steps work with besides the round's own resource: databases, servers, numbers, and a short memory.

The memory is only ever a reason to look less often. Whatever a decision rests on is in the resource's status, so a new
process goes on where the old one was killed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from konverge import clock
from konverge.operators.nacos.database import Databases
from konverge.operators.nacos.numbers import NacosNumbers
from konverge.operators.nacos.server import NacosServers
from konverge.runtime import Request

_MEMORY_LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How often and how long. Seconds."""

    requeue: float = 5.0
    """Until the next round of one that did not come to its end: the document's number."""
    patience: float = 180.0
    """How long something may be wrong before the phase is Failed: the document's number."""
    health_interval: float = 30.0
    """Between looks at a cluster that runs; readiness of pods is watched besides."""
    database_interval: float = 60.0
    """Between looks at a database that was well."""
    call_timeout: float = 5.0
    """For one answer of one server."""
    concurrency: int = 64
    """Questions to servers under way at a time, of all clusters together."""
    verdict_lasts: float = 12.0
    """How old a verdict may be when UpdateStatus acts on it: two requeues and a little."""
    admission: float = 30.0
    """How long a ready server may be outside the raft groups before it is restarted; newcomers need seconds."""
    stuck_after: float = 300.0
    """How long a pod may be of no use before it is restarted; also the pause between two restarts of it."""


@dataclass(slots=True)
class Memory:
    """When something of a resource (its database) was last found well, and by which wish."""

    _seen: dict[Request, tuple[str, float]] = field(default_factory=dict)

    def fresh(self, key: Request, fingerprint: str, interval: float) -> bool:
        seen = self._seen.get(key)
        return seen is not None and seen[0] == fingerprint and clock.monotonic() - seen[1] < interval

    def same(self, key: Request, fingerprint: str) -> bool:
        seen = self._seen.get(key)
        return seen is not None and seen[0] == fingerprint

    def note(self, key: Request, fingerprint: str) -> None:
        self._seen.pop(key, None)
        self._seen[key] = (fingerprint, clock.monotonic())
        if len(self._seen) > _MEMORY_LIMIT:
            del self._seen[next(iter(self._seen))]

    def forget(self, key: Request) -> None:
        self._seen.pop(key, None)


@dataclass(slots=True, kw_only=True)
class Tools:
    """One for all rounds of a process."""

    databases: Databases
    servers: NacosServers
    options: Options = field(default_factory=Options)
    memory: Memory = field(default_factory=Memory)
    monitors: Memory = field(default_factory=Memory)
    """Which ServiceMonitors were applied, and when."""
    numbers: NacosNumbers = field(default_factory=NacosNumbers)
    gate: asyncio.Semaphore = field(init=False)

    def forget(self, key: Request) -> None:
        """The resource is gone."""
        self.memory.forget(key)
        self.monitors.forget(key)
        self.numbers.forget(key)

    def __post_init__(self) -> None:
        self.gate = asyncio.Semaphore(self.options.concurrency)
