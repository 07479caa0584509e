"""What a process counts, as plain attributes.

Counting happens at every event and every reconcile, so it must cost next to nothing: an attribute and an addition. The
names, labels and texts of Prometheus are added at scrape time (`konverge.observe.exposition`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from konverge import clock
from konverge.cache.informer import Informer
from konverge.client.call import METHODS, Call, Caller
from konverge.client.client import Client
from konverge.client.errors import ApiStatusError, ClientError
from konverge.wire.message import Response, Stream

# The buckets that dashboards expect. Upstream: pkg/metrics/workqueue.go and pkg/internal/controller/metrics/metrics.go
# of controller-runtime; component-base's metrics/prometheus/restclient for requests.
QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip

LATENCY_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Histogram:
    """Counts per bucket, and a sum. The counts are not cumulative here; the exposition adds them up."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class QueueNumbers(msgspec.Struct):
    """A work queue's numbers; this is the queue's `QueueMetrics`."""

    depth: int = 0
    peak: int = 0
    """The greatest depth since `take_peak`: short queues are empty again at the next scrape."""
    adds: int = 0
    retries: int = 0
    waiting: Histogram = msgspec.field(default_factory=lambda: Histogram(QUEUE_BUCKETS))
    working: Histogram = msgspec.field(default_factory=lambda: Histogram(QUEUE_BUCKETS))

    def added(self, depth: int) -> None:
        self.adds += 1
        self.depth = depth
        if depth > self.peak:
            self.peak = depth

    def take_peak(self) -> int:
        """The greatest depth since the last call."""
        peak, self.peak = self.peak, self.depth
        return peak

    def handed_out(self, waited: float, depth: int) -> None:
        self.waiting.observe(waited)
        self.depth = depth

    def finished(self, worked: float) -> None:
        self.working.observe(worked)

    def retried(self) -> None:
        self.retries += 1


class ControllerNumbers(msgspec.Struct):
    """A controller's numbers."""

    name: str
    workers: int = 0
    results: dict[str, int] = msgspec.field(
        default_factory=lambda: {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
    )
    errors: int = 0
    terminal_errors: int = 0
    panics: int = 0
    """Exceptions that the author of the reconciler did not mean to raise."""
    timeouts: int = 0
    given_up: int = 0
    echoes: int = 0
    """Events of own writes that led to no reconcile."""
    source_restarts: dict[str, int] = msgspec.field(default_factory=dict)
    """Source -> how often it ended or failed and was started again."""
    sources_down: dict[str, str] = msgspec.field(default_factory=dict)
    """Source -> why it does not run now."""
    timer_calls: dict[str, int] = msgspec.field(default_factory=dict)
    """Timer -> calls, of all objects."""
    daemons_running: dict[str, int] = msgspec.field(default_factory=dict)
    """Daemon -> how many objects have it running."""
    task_failures: dict[str, int] = msgspec.field(default_factory=dict)
    """Timer or daemon -> how often it failed."""
    time: Histogram = msgspec.field(default_factory=lambda: Histogram(RECONCILE_BUCKETS))
    event_to_reconcile: Histogram = msgspec.field(default_factory=lambda: Histogram(RECONCILE_BUCKETS))
    queue: QueueNumbers = msgspec.field(default_factory=QueueNumbers)
    running: dict[object, float] = msgspec.field(default_factory=dict)
    """Key -> when its reconcile began, for those that run now."""
    oldest: Callable[[], float] = lambda: 0.0
    """For how long the key that has waited longest waits."""

    @property
    def longest_running(self) -> float:
        now = clock.monotonic()
        return max((now - began for began in self.running.values()), default=0.0)

    @property
    def unfinished(self) -> float:
        now = clock.monotonic()
        return sum(now - began for began in self.running.values())


class TaskNumbers(msgspec.Struct):
    """What is counted of one task of a manager."""

    restarts: int = 0
    """How often it failed and was started again."""
    running: bool = False
    down: str = ""
    """Why it does not run now."""


class RequestNumbers:
    """(code, method) -> requests; `<error>` is the code of those that got no answer, as in client-go."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        self.counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.durations: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(LATENCY_BUCKETS))


class Counted(Client):
    """A client whose requests are counted."""

    def __init__(self, inner: Client, numbers: RequestNumbers) -> None:
        self._use_caller(CountedCalls(inner.caller, numbers), inner.mapper)
        self.server = inner.server


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


class Numbers(msgspec.Struct):
    """Everything that one manager counts. `konverge.observe.exposition.render` turns it into Prometheus text."""

    controllers: list[ControllerNumbers] = msgspec.field(default_factory=list)
    informers: list[Informer] = msgspec.field(default_factory=list)
    requests: RequestNumbers | None = None
    more: list[Callable[[], Iterable[Any]]] = msgspec.field(default_factory=list)
    """Further numbers of controllers, as prometheus_client's metric families."""
    leaders: dict[str, Callable[[], bool]] = msgspec.field(default_factory=dict)
    tasks: dict[str, TaskNumbers] = msgspec.field(default_factory=dict)
    """Tasks of the manager, by name."""
    process: Any = None
    """The `ProcessNumbers` of konverge.observe.process, while something is served."""
    registry: Any = None
    """The prometheus_client registry, made at the first scrape or when metrics are added."""
