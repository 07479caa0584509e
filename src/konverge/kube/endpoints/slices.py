"""Endpoints over slices: as few writes as possible, no slice over its size. Pure functions.

Slices that must change anyway are filled first; what is left goes into one untouched slice if that has room for all of
it, else into new ones. So one pod that comes or goes is one write, whatever the size of the Service.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from konverge.objects.kinds.discovery_v1 import Endpoint

SIZE = 100
"""Endpoints in one slice: kube-controller-manager's default."""

Identity = tuple[tuple[str, ...], str, str, str]


def identity(endpoint: Endpoint) -> Identity:
    """What makes an endpoint the same one while its conditions change."""
    target = endpoint.target_ref
    place = ((target.namespace or "") if target else "", (target.name or "") if target else "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname or "", *place


@dataclass(slots=True)
class Arrangement:
    """What becomes of the slices of one group."""

    changed: dict[str, list[Endpoint]] = field(default_factory=dict)
    """The new content of slices by name; an empty one is to go."""
    made: list[list[Endpoint]] = field(default_factory=list)
    """New slices."""


def arrange(existing: dict[str, list[Endpoint]], desired: Iterable[Endpoint], size: int = SIZE) -> Arrangement:
    """Where each desired endpoint goes, given the slices of the same ports and address type."""
    rest = {identity(endpoint): endpoint for endpoint in desired}
    plan, untouched = Arrangement(), dict[str, list[Endpoint]]()
    for name, present in existing.items():
        kept = [found for endpoint in present if (found := rest.pop(identity(endpoint), None)) is not None]
        (untouched if kept == present and present else plan.changed)[name] = kept
    left = list(rest.values())
    for name in sorted(plan.changed, key=lambda name: -len(plan.changed[name])):
        if plan.changed[name]:
            left = _fill(plan.changed[name], left, size)
    if left:
        fitting = [name for name, kept in untouched.items() if len(kept) + len(left) <= size]
        if fitting:
            name = max(fitting, key=lambda name: len(untouched[name]))
            plan.changed[name] = [*untouched[name], *left]
        else:
            plan.made = [left[start : start + size] for start in range(0, len(left), size)]
    return plan


def _fill(kept: list[Endpoint], left: list[Endpoint], size: int) -> list[Endpoint]:
    room = max(0, size - len(kept))
    kept += left[:room]
    return left[room:]
