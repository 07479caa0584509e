"""Caches for mappings: from a changed object to those that it concerns."""

from __future__ import annotations

from typing import TypeVar

from konverge.cache.lister import Lister
from konverge.objects.meta import Object
from konverge.runtime.context import Caches

K = TypeVar("K", bound=Object)


def declared(caches: Caches, kind: type[K]) -> Lister[K]:
    """The cache of a kind that the controller declares. Without it a mapping would silently find nothing."""
    lister = caches.lister(kind)
    if lister is None:
        raise LookupError(f"{kind.__name__} is not cached: declare uses=[Use({kind.__name__}, cached=True)]")
    return lister
