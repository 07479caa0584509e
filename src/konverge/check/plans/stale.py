"""Stale starts: what led to a destructive write is shown once more, when what it destroyed is there again.

And, less dangerous, watches that stand still until the next rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.causes import History, destructions
from konverge.check.model import Change, Lag, Plan, Stale
from konverge.check.reference import Reference

_NOT_AGAIN = frozenset(("/secrets", "/persistentvolumeclaims"))
"""Created twice, or over what is there, something is lost."""


def stale(reference: Reference) -> Iterator[Plan]:
    """For every cause of every destructive write; then for what was created a moment ago; then watches that lag."""
    history = History(reference.run)
    seen: set[Stale] = set()
    for item in (*_pairs(history), *_forgotten(history)):
        if item.resource in any_version(reference) and item not in seen:
            seen.add(item)
            yield Plan("stale", (item,))
    yield from _lags(history)


def any_version(reference: Reference) -> set[str]:
    """Resources whose lists the operator allows to be old: the others are never stale."""
    return {delivery.resource for delivery in reference.run.deliveries if delivery.any_version}


def _pairs(history: History) -> Iterator[Stale]:
    for item in destructions(history):
        for cause in sorted(history.causes(item.exchange), key=lambda change: change.writer != "user"):
            resource = cause.ref.resource
            between = any(
                change.ref.resource == resource and cause.revision < change.revision <= item.back.revision
                for change in history.changes
            )
            yield Stale(resource, cause.moment, item.back.moment, before=not between)
            if between and item.back.step == item.change.step:
                yield Stale(resource, cause.moment, item.back.moment, before=True)


def _forgotten(history: History) -> Iterator[Stale]:
    """A restart that does not see what was created before it: what must not be there twice."""
    for change in history.changes:
        if change.writer != "operator" or change.moment.type != "ADDED":
            continue
        if change.ref.resource in _NOT_AGAIN or change.moment.name != change.ref.name:
            yield Stale(change.ref.resource, change.moment, change.moment, before=True)


def _lags(history: History) -> Iterator[Plan]:
    """Of every resource that the operator watches: from its first change in a step, first and last such step."""
    first: dict[str, dict[int, Change]] = {}
    for change in history.changes:
        if change.revision in history.delivered and change.step >= 0:
            first.setdefault(change.ref.resource, {}).setdefault(change.step, change)
    for resource, by_step in first.items():
        for step in sorted({min(by_step), max(by_step)}):
            yield Plan("stale", (Lag(resource, by_step[step].moment),))
