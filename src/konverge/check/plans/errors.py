"""Errors of the API server: every kind of write meets a conflict, an error and a lost answer once; reads an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from konverge.check.model import Exchange, Place, Plan, Refuse
from konverge.check.plans.writes import distinct, place_of
from konverge.check.reference import Reference

Answer = Literal["conflict", "error", "unavailable", "throttled", "timeout", "lost"]

ANSWERS: dict[str, tuple[Answer, ...]] = {
    "create": ("lost", "error"),
    "update": ("conflict", "lost", "error"),
    "patch": ("conflict", "lost", "error"),
    "delete": ("error", "lost"),
    "deletecollection": ("error", "lost"),
}
"""By verb. They lead to different ends: a lost creation is asked for again, a lost update meets its own result."""

LASTING = 4
"""How often in a row an API server that is in trouble refuses."""


def errors(reference: Reference) -> Iterator[Plan]:
    """One per kind of write and answer, at the first write of its kind that changed something."""
    seen: set[tuple[str, str, str]] = set()
    for exchange in distinct(reference):
        for answer in ANSWERS.get(exchange.verb, ()):
            key = (exchange.verb, _kind(exchange), answer)
            if key not in seen:
                seen.add(key)
                yield Plan("errors", (Refuse(place_of(exchange), answer),))
    yield from _lasting(reference)
    yield from _reads(reference)


def _kind(exchange: Exchange) -> str:
    """A guarded write and one that is not are two kinds."""
    return f"{exchange.resource}{' guarded' if exchange.guarded else ''}"


def _lasting(reference: Reference) -> Iterator[Plan]:
    """Errors that last over several attempts, of the first write of every verb."""
    answers: dict[str, Answer] = {"create": "unavailable", "update": "throttled", "patch": "throttled"}
    for exchange in distinct(reference):
        answer = answers.pop(exchange.verb, None)
        if answer is not None:
            yield Plan("errors", (Refuse(place_of(exchange), answer, times=LASTING),))


def _reads(reference: Reference) -> Iterator[Plan]:
    """Reads of single objects and lists: who takes an error for an absence deletes or creates."""
    for request, count in sorted(reference.run.reads.items()):
        verb, _, resource = request.partition(" ")
        if verb not in ("get", "list") or "/" not in resource or resource.startswith("/api") or "leases" in resource:
            continue
        for occurrence in sorted({1, (count + 1) // 2}):
            place = Place(verb, resource, "", "", occurrence=occurrence)
            yield Plan("errors", (Refuse(place, "error"),))
