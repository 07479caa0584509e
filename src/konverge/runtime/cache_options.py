"""What a declaration asks of the cache of its kind, besides which objects are in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.cache.spec import Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """The form in which objects are kept. Equal options share a cache.

    CacheOptions(metadata_only=True)
    """

    metadata_only: bool = False
    """The server sends metadata alone: names, labels, annotations, owners."""
    project: type[Any] | None = None
    """A smaller class with the fields that are read; the rest is not kept."""
    transform: Transform | None = None
    """Changes or trims each object, as plain data, before it is kept."""
