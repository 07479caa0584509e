"""The writes of the reference that plans are made of, without the many that are alike."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Change, Exchange, Place
from konverge.check.reference import Reference

MOST_ALIKE = 3
"""Of writes that differ in their occurrence alone, all are taken if there are so few; else the first and the last."""


def effective(reference: Reference) -> Iterator[Exchange]:
    """Writes that changed something, in their order."""
    for exchange in reference.run.exchanges:
        if exchange.place is not None and exchange.status < 400:
            yield exchange


def distinct(reference: Reference) -> list[Exchange]:
    """Without those that repeat a change for the fourth time or more: they say nothing new, and their number varies."""
    total: dict[Place, int] = {}
    exchanges = list(effective(reference))
    for exchange in exchanges:
        base = without_occurrence(place_of(exchange))
        total[base] = total.get(base, 0) + 1
    return [exchange for exchange in exchanges if _is_kept(place_of(exchange), total)]


def _is_kept(place: Place, total: dict[Place, int]) -> bool:
    count = total[without_occurrence(place)]
    return count <= MOST_ALIKE or place.occurrence in (1, count)


def place_of(exchange: Exchange) -> Place:
    """Of a write that changed something."""
    assert exchange.place is not None
    return exchange.place


def without_occurrence(place: Place) -> Place:
    return Place(place.verb, place.resource, place.namespace, place.name, place.change)


def step_of(reference: Reference, exchange: Exchange) -> int:
    """The step in which a write was made; -1 before the first."""
    changes = changes_of(reference, exchange)
    return changes[0].step if changes else -1


def changes_of(reference: Reference, exchange: Exchange) -> list[Change]:
    """What a write changed."""
    revisions = set(exchange.revisions)
    return [change for change in reference.run.changes if change.revision in revisions]


def kind_of(resource: str) -> str:
    """
    >>> kind_of("apps/statefulsets/status")
    'apps/statefulsets'
    """
    return "/".join(resource.split("/")[:2])
