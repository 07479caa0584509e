"""The numbers as Prometheus reads them, under the names that dashboards use.

Some numbers appear under two names: `workqueue_*` and `controller_runtime_*` as controller-runtime names them, so that
its dashboards work unchanged, and `controller_*` as our own documents do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from konverge import clock
from konverge.cache.informer import Informer
from konverge.observe.metrics import ControllerNumbers, Histogram, Numbers, RequestNumbers, TaskNumbers
from konverge.observe.process import ProcessNumbers

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_log = logging.getLogger("konverge.metrics")


class _Collector(Collector):
    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._failing: set[Callable[[], Iterable[Metric]]] = set()

    def collect(self) -> Iterable[Metric]:
        numbers = self._numbers
        yield from _controllers(numbers.controllers)
        yield from _queues(numbers.controllers)
        yield from _informers(numbers.informers)
        if numbers.requests is not None:
            yield from _requests(numbers.requests)
        yield from _tasks(numbers.tasks)
        if numbers.process is not None:
            yield from _process(numbers.process)
        for more in numbers.more:
            yield from self._contained(more)
        if numbers.leaders:
            values = [([name], float(leads())) for name, leads in numbers.leaders.items()]
            yield _gauge("leader_election_master_status", "1 while this process leads", ["name"], values)

    def _contained(self, more: Callable[[], Iterable[Metric]]) -> Iterable[Metric]:
        """An author's numbers, or none while they cannot be had: they must not cost the scrape all the others."""
        try:
            families = list(more())
            generate_latest(_Families(families))  # what cannot be written would fail the whole text
        except Exception:
            if more not in self._failing:
                self._failing.add(more)
                _log.exception("the metrics of a controller are left out: %r failed", more)
            return ()
        self._failing.discard(more)
        return families


class _Families(CollectorRegistry):
    """A registry of some families alone."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def render(numbers: Numbers) -> bytes:
    """The text that Prometheus scrapes."""
    return generate_latest(registry_of(numbers))


def registry_of(numbers: Numbers) -> CollectorRegistry:
    """A prometheus_client registry with these numbers, to which a program can add metrics of its own."""
    if numbers.registry is None:
        numbers.registry = CollectorRegistry()
        numbers.registry.register(_Collector(numbers))
        ProcessCollector(registry=numbers.registry)
    registry: CollectorRegistry = numbers.registry
    return registry


def _controllers(controllers: list[ControllerNumbers]) -> Iterator[Metric]:
    yield _counter("controller_runtime_reconcile", "Reconciles by result", ["controller", "result"], [
        ([c.name, result], count) for c in controllers for result, count in c.results.items()
    ])  # fmt: skip
    for name, text, attribute in (
        ("controller_runtime_reconcile_errors", "Reconciles that failed", "errors"),
        ("controller_reconcile_errors", "Reconciles that failed", "errors"),
        ("controller_runtime_terminal_reconcile_errors", "Failures that are not retried", "terminal_errors"),
        ("controller_runtime_reconcile_panics", "Unexpected exceptions", "panics"),
        ("controller_runtime_reconcile_timeouts", "Reconciles that took too long", "timeouts"),
        ("controller_reconcile_given_up", "Keys that failed more than max_retries times in a row", "given_up"),
        ("controller_own_echoes", "Events of own writes that led to no reconcile", "echoes"),
    ):
        yield _counter(name, text, ["controller"], [([c.name], getattr(c, attribute)) for c in controllers])
    yield _counter("controller_source_restarts", "Sources started again", ["controller", "source"], [
        ([c.name, source], count) for c in controllers for source, count in c.source_restarts.items()
    ])  # fmt: skip
    for name, text, attribute in (
        ("controller_timer_calls", "Calls of timers", "timer_calls"),
        ("controller_task_failures", "Failures of timers and daemons", "task_failures"),
    ):
        yield _counter(name, text, ["controller", "task"], [
            ([c.name, task], count) for c in controllers for task, count in getattr(c, attribute).items()
        ])  # fmt: skip
    yield _gauge("controller_daemons_running", "Objects whose daemon runs", ["controller", "task"], [
        ([c.name, task], count) for c in controllers for task, count in c.daemons_running.items()
    ])  # fmt: skip
    for name in ("controller_runtime_reconcile_time_seconds", "controller_reconcile_time_seconds"):
        yield _histogram(name, "Time of a reconcile", ["controller"], [([c.name], c.time) for c in controllers])
    waits = [([c.name], c.event_to_reconcile) for c in controllers]
    yield _histogram("event_to_reconcile_seconds", "From an event to its reconcile", ["controller"], waits)
    workers = [([c.name], c.workers) for c in controllers]
    yield _gauge("controller_runtime_max_concurrent_reconciles", "Workers", ["controller"], workers)
    active = [([c.name], len(c.running)) for c in controllers]
    yield _gauge("controller_runtime_active_workers", "Workers at work", ["controller"], active)


def _tasks(tasks: dict[str, TaskNumbers]) -> Iterator[Metric]:
    if tasks:
        restarts = [([name], task.restarts) for name, task in tasks.items()]
        yield _counter("manager_task_restarts", "Tasks that failed and were started again", ["task"], restarts)
        running = [([name], float(task.running)) for name, task in tasks.items()]
        yield _gauge("manager_task_running", "1 while the task runs", ["task"], running)


def _queues(controllers: list[ControllerNumbers]) -> Iterator[Metric]:
    both = ["name", "controller"]
    depth = [([c.name, c.name], c.queue.depth) for c in controllers]
    yield _gauge("workqueue_depth", "Keys that wait", both, depth)
    yield _gauge("controller_workqueue_depth", "Keys that wait", ["controller"], [(k[:1], v) for k, v in depth])
    for suffix, text, attribute in (("adds", "Keys added", "adds"), ("retries", "Keys retried", "retries")):
        values = [([c.name, c.name], getattr(c.queue, attribute)) for c in controllers]
        yield _counter(f"workqueue_{suffix}", text, both, values)
        yield _counter(f"controller_workqueue_{suffix}", text, ["controller"], [(k[:1], v) for k, v in values])
    yield _histogram("workqueue_queue_duration_seconds", "Time that keys wait", both, [
        ([c.name, c.name], c.queue.waiting) for c in controllers
    ])  # fmt: skip
    yield _histogram("workqueue_work_duration_seconds", "Time that keys are worked on", both, [
        ([c.name, c.name], c.queue.working) for c in controllers
    ])  # fmt: skip
    yield _gauge("workqueue_unfinished_work_seconds", "Seconds of work under way", both, [
        ([c.name, c.name], c.unfinished) for c in controllers
    ])  # fmt: skip
    yield _gauge("workqueue_oldest_key_age_seconds", "For how long the oldest waiting key waits", both, [
        ([c.name, c.name], c.oldest()) for c in controllers
    ])  # fmt: skip
    yield _gauge("workqueue_longest_running_processor_seconds", "The longest work under way", both, [
        ([c.name, c.name], c.longest_running) for c in controllers
    ])  # fmt: skip


def _process(process: ProcessNumbers) -> Iterator[Metric]:
    lag = "How much later than asked the event loop runs a callback"
    yield _histogram("event_loop_lag_seconds", lag, [], [([], process.lag)])
    yield _histogram("python_gc_pause_seconds", "Pauses of the garbage collector", ["generation"], [
        ([str(generation)], pauses) for generation, pauses in enumerate(process.pauses)
    ])  # fmt: skip


def _informers(informers: list[Informer]) -> Iterator[Metric]:
    now = clock.monotonic()
    by = ["resource"]
    names = [[str(informer.spec)] for informer in informers]
    pairs = list(zip(names, informers, strict=True))
    yield _gauge("informer_objects", "Objects in the cache", by, [(n, i.count) for n, i in pairs])
    yield _gauge("informer_quarantined_objects", "Objects that something fails on", by, [
        (n, i.quarantine.count) for n, i in pairs
    ])  # fmt: skip
    yield _counter("informer_quarantined", "Versions of objects that something failed on", by, [
        (n, i.quarantine.reported) for n, i in pairs
    ])  # fmt: skip
    ages = [(n, max(now - r.health.last_event for r in i.reflectors)) for n, i in pairs]
    yield _gauge("watch_last_event_age_seconds", "Since the last sign of life of a watch", by, ages)
    yield _counter("relist", "Lists made", by, [(n, sum(r.health.lists for r in i.reflectors)) for n, i in pairs])
    yield _counter("watch_restarts", "Watches restarted", ["resource", "reason"], [
        ([*n, reason.value], sum(r.health.restarts[reason] for r in i.reflectors))
        for n, i in pairs for reason in i.reflectors[0].health.restarts
    ])  # fmt: skip


def _requests(requests: RequestNumbers) -> Iterator[Metric]:
    values = [([str(code), method, requests.host], count) for (code, method), count in requests.counts.items()]
    yield _counter("rest_client_requests", "Requests to the API server", ["code", "method", "host"], values)
    durations = [([verb, requests.host], histogram) for verb, histogram in requests.durations.items()]
    yield _histogram("rest_client_request_duration_seconds", "Time of a request", ["verb", "host"], durations)


Values = list[tuple[list[str], Any]]


def _counter(name: str, text: str, labels: list[str], values: Values) -> Metric:
    return _filled(CounterMetricFamily(name, text, labels=labels), values)


def _gauge(name: str, text: str, labels: list[str], values: Values) -> Metric:
    return _filled(GaugeMetricFamily(name, text, labels=labels), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Values) -> Metric:
    for key, value in values:
        family.add_metric(key, value)
    return family


def _histogram(name: str, text: str, labels: list[str], values: list[tuple[list[str], Histogram]]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, histogram in values:
        total, buckets = 0, []
        for bound, count in zip((*map(repr, histogram.bounds), "+Inf"), histogram.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family.add_metric(key, buckets, histogram.total)
    return family
