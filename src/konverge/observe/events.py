"""The event recorder: what happened to an object, as `kubectl describe` shows it.

`event` never waits and never fails: it goes into a bounded queue, and one task writes. Events are for people to read;
when the API server is slow or cannot be reached, the oldest are dropped and counted, and no reconcile is delayed.

Upstream: client-go's tools/record.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import warnings
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, overload

from konverge import clock
from konverge.client import AlreadyExists, Client, ClientError, Forbidden, MergePatch, NotFound
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.objects.times import format_time
from konverge.observe.correlate import About, Correlator, Occurrence

EVENTS = Resource("", "v1", "Event", "events")
MAX_WAITING = 10_000
"""Events that may wait: some megabytes. Bursts are written after the reconciles that they come from."""
MAX_MESSAGE = 1024
"""Characters of a message. Upstream: NoteLengthLimit, which binds events.k8s.io."""
FLUSH = 5.0
"""Seconds for writing the rest at the end."""
NAME_ATTEMPTS = 3
"""How many names are tried for one event."""

_NEW_ORDER = "the order is event(reason, message, about=obj, type='Warning') now; see docs/migrating.md"

_log = logging.getLogger("konverge.events")


class EventRecorder:
    """Records events. `run` writes them until it is cancelled; then what is left is flushed, within a limit.

    recorder.event("Pulled", "image nginx:1.27 pulled", about=pod)
    """

    def __init__(self, client: Client, component: str, *, instance: str = "") -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._correlators: dict[str, Correlator] = {}
        self._waiting: deque[tuple[str, About, str, str, str, float]] = deque()
        self._added = asyncio.Event()
        self.dropped = 0

    @overload
    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None: ...
    @overload
    def event(self, about: Object, type: str, reason: str, message: str, /) -> None: ...
    def event(self, *texts: Any, **named: Any) -> None:
        """Record that something happened. `reason` is one word in CamelCase, `type` is Normal or Warning.

        The order of earlier versions (`about, type, reason, message`) works for one more release.
        """
        self._record(self._component, *_ordered(*texts, **named))

    def named(self, component: str) -> NamedRecorder:
        """A recorder for another component, whose events this one writes."""
        return NamedRecorder(partial(self._record, component))

    def _record(self, component: str, about: Object, type: str, reason: str, message: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        message = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
        self._waiting.append((component, _about(about), type, reason, message, clock.now()))
        self._added.set()

    async def run(self) -> None:
        try:
            while True:
                await self._added.wait()
                self._added.clear()
                await self._write_all()
        except asyncio.CancelledError:
            await self._flush()
            raise

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH):
                await self._write_all()
        except TimeoutError:
            _log.warning("%d events were not written before the end", len(self._waiting))

    async def _write_all(self) -> None:
        while self._waiting:
            component, about, type, reason, message, when = self._waiting[0]
            correlator = self._correlators.setdefault(component, Correlator())
            occurrence = correlator.correlate(about, type, reason, message, when)
            if occurrence is not None:
                occurrence.component = component
                await self._write(occurrence)
            self._waiting.popleft()
            await asyncio.sleep(
                0
            )  # reconciles go first: with the server in the same process, no write would ever yield

    async def _write(self, occurrence: Occurrence) -> None:
        try:
            if occurrence.name:
                try:
                    await self._count(occurrence)
                    return
                except NotFound:
                    pass  # the API server keeps events for an hour: write it again
            occurrence.first, occurrence.count = occurrence.last, 1
            await self._create(occurrence)
        except ClientError as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                return  # the namespace is being deleted, and the event with it
            _log.warning("event %s about %s not written: %s", occurrence.reason, occurrence.about.name, error)
        except Exception:  # an event that cannot be encoded must not take the recorder, and the process, along
            _log.exception("event %s about %s not written", occurrence.reason, occurrence.about.name)

    async def _create(self, occurrence: Occurrence) -> None:
        """Under a name like client-go's: object and time. Several events of one moment differ in the last digits."""
        for attempt in range(NAME_ATTEMPTS):
            stamp = (int(occurrence.last * 1e9) & ~0xFFFFF) | clock.rng().getrandbits(20)
            occurrence.name = f"{occurrence.about.name}.{stamp:x}"
            try:
                space = occurrence.about.namespace or "default"
                await self._client.create(self._body(occurrence), space, resource=EVENTS)
                return
            except AlreadyExists:
                if attempt == NAME_ATTEMPTS - 1:
                    raise

    async def _count(self, occurrence: Occurrence) -> None:
        patch = MergePatch(
            {
                "count": occurrence.count,
                "lastTimestamp": _time(occurrence.last),
                "message": occurrence.message,
            }
        )
        await self._client.patch(EVENTS, occurrence.name, patch, occurrence.about.namespace or "default")

    def _body(self, occurrence: Occurrence) -> dict[str, Any]:
        about = occurrence.about
        reference = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": occurrence.name, "namespace": about.namespace or "default"},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": occurrence.message,
            "source": {"component": occurrence.component},
            "firstTimestamp": _time(occurrence.first),
            "lastTimestamp": _time(occurrence.last),
            "count": occurrence.count,
            "reportingComponent": occurrence.component,
            "reportingInstance": self._instance or occurrence.component,
        }


class NamedRecorder:
    """Records events of one component; see `EventRecorder.named`."""

    def __init__(self, record: Callable[[Object, str, str, str], None]) -> None:
        self._record = record

    @overload
    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None: ...
    @overload
    def event(self, about: Object, type: str, reason: str, message: str, /) -> None: ...
    def event(self, *texts: Any, **named: Any) -> None:
        self._record(*_ordered(*texts, **named))


def _ordered(
    *texts: Any,
    reason: str | None = None,
    message: str | None = None,
    about: Object | None = None,
    type: str = "Normal",
) -> tuple[Object, str, str, str]:
    """Object, type, reason and message of a call in the present order or in that of earlier versions."""
    if about is None and len(texts) == 4:
        warnings.warn(f"event(about, type, reason, message): {_NEW_ORDER}", DeprecationWarning, stacklevel=3)
        about, type, *texts = texts  # type: ignore[assignment]
    values = [*texts, *(text for text in (reason, message) if text is not None)]
    if about is None or len(values) != 2:
        raise TypeError(f"event() needs a reason, a message and about=: {_NEW_ORDER}")
    return about, type, values[0], values[1]


class _OldOrder:
    """A recorder of the author's own, whose `event` takes its arguments in the order of earlier versions."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        self._inner.event(about, type, reason, message)


def with_new_order(recorder: Any) -> Any:
    """A recorder as it is, or wrapped if it was written for earlier versions."""
    if next(iter(inspect.signature(recorder.event).parameters), "") != "about":
        return recorder
    warnings.warn(f"{recorder.__class__.__name__}.event: {_NEW_ORDER}", DeprecationWarning, stacklevel=2)
    return _OldOrder(recorder)


def _about(obj: Object) -> About:
    meta = obj.metadata
    return About(obj.api_version, obj.kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
