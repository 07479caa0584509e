"""A run as swim lanes: who changed what, in the order of the store, with what the operator had seen by then."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from konverge.check.model import Change, Run
from konverge.check.names import Names
from konverge.check.redaction import shown_value

PODS = frozenset(("/pods", "/persistentvolumeclaims", "/persistentvolumes"))
MOST_EVENTS = 1500
_VALUE = 600
_SIGNS = {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}


class Event(msgspec.Struct):
    """One change of the store."""

    revision: int
    time: float
    step: int
    lane: str
    sign: str
    name: str
    fields: str = ""
    diff: list[tuple[str, str, str]] = []
    seen: list[str] = []
    """For a write of the operator: how old its view was."""
    guarded: bool = False
    mark: str = ""
    """The perturbation that came right after it."""


class Lanes(msgspec.Struct):
    steps: list[str]
    lanes: list[str]
    events: list[Event]
    cut: int = 0
    """So many more changes are not drawn."""


def lanes_of(run: Run, names: Names, steps: int | None = None) -> Lanes:
    """`steps`: only the first so many."""
    known = [change for change in run.changes if steps is None or change.step < steps]
    changes = known[:MOST_EVENTS]
    views = _Views(run, names)
    writes = {revision: item for item in run.exchanges for revision in item.revisions}
    events = []
    for change in changes:
        event = _event(change, names)
        write = writes.get(change.revision)
        if change.writer == "operator" and write is not None:
            event.seen, event.guarded, event.mark = views.at(change), write.guarded, _mark(write.error, write.status)
        events.append(event)
    operators = [f"operator {number}" for number in range(1, _incarnations(run) + 1)]
    lanes = ["user", *operators, "controllers", "pods"]
    return Lanes([step.name for step in run.steps], lanes, events, len(known) - len(changes))


def _incarnations(run: Run) -> int:
    """Also those that wrote nothing."""
    written = max((item.incarnation for item in run.exchanges), default=1)
    return max(written, max((item.incarnation for item in run.deliveries), default=1))


def _mark(error: str, status: int) -> str:
    return error if status == 0 or error.startswith("crash") else ""


def _event(change: Change, names: Names) -> Event:
    resource = change.ref.resource
    return Event(
        revision=change.revision,
        time=round(change.time, 3),
        step=change.step,
        lane=_lane(change),
        sign=_SIGNS[change.moment.type],
        name=names.spoken(resource, change.ref.name),
        fields=change.moment.change,
        diff=[(path, _text(resource, path, old), _text(resource, path, new)) for path, old, new in change.differences],
    )


def _lane(change: Change) -> str:
    if change.writer == "user":
        return "user"
    if change.writer == "operator":
        return f"operator {change.incarnation}"
    return "pods" if change.ref.resource in PODS else "controllers"


def _text(resource: str, path: str, value: Any) -> str:
    text = shown_value(resource, path, value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}…"


class _Views:
    """How far behind the operator's watches were."""

    def __init__(self, run: Run, names: Names) -> None:
        self._names = names
        self._stored: dict[str, list[int]] = defaultdict(list)
        for change in run.changes:
            self._stored[change.ref.resource].append(change.revision)
        self._deliveries = sorted(run.deliveries, key=lambda item: item.time)
        self._times = [item.time for item in self._deliveries]

    def at(self, change: Change) -> list[str]:
        """For each kind whose view was old: by how many changes."""
        latest: dict[str, int] = {}
        for delivery in self._deliveries[: bisect_right(self._times, change.time)]:
            if delivery.incarnation == change.incarnation:
                latest[delivery.resource] = max(latest.get(delivery.resource, 0), delivery.revision)
        behind = []
        for resource, revision in sorted(latest.items()):
            missing = sum(revision < stored < change.revision for stored in self._stored[resource])
            if missing:
                behind.append(f"{self._names.kind(resource)}: as of revision {revision}, {missing} changes behind")
        return behind


# ------------------------------------------------------------------ where two runs part


class Divergence(msgspec.Struct):
    """The first change that one of two runs has and the other has not, by the numbers of their changes."""

    run: int
    reference: int
    extra: bool
    """The run has it, and the reference has not."""


def divergence(run: Run, reference: Run) -> Divergence | None:
    """After the first perturbation that hit a write; the order of changes that both have does not count."""
    ours, theirs = [_key(item) for item in run.changes], [_key(item) for item in reference.changes]
    begin = _first_mark(run)
    extra = _first_without(ours, Counter(theirs), begin)
    missing = _first_without(theirs, Counter(ours), min(begin, len(theirs)))
    if extra is None and missing is None:
        return None
    if missing is None or (extra is not None and extra <= missing):
        assert extra is not None
        return Divergence(extra, min(extra, max(len(theirs) - 1, 0)), extra=True)
    return Divergence(min(missing, max(len(ours) - 1, 0)), missing, extra=False)


def _first_without(keys: Sequence[object], other: Counter[object], begin: int) -> int | None:
    for position, key in enumerate(keys):
        if not other[key]:
            if position >= begin:
                return position
        else:
            other[key] -= 1
    return None


def _first_mark(run: Run) -> int:
    hit = {item.revisions[-1] for item in run.exchanges if item.revisions and _mark(item.error, item.status)}
    return next((position for position, change in enumerate(run.changes) if change.revision in hit), 0)


def _key(change: Change) -> object:
    moment = change.moment
    return moment.type, moment.resource, moment.namespace, moment.name, moment.change, change.writer, change.step
