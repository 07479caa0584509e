"""What a declaration asks of the cache of its kind, besides which objects are in it."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.cache.spec import Transform, check_projection
from konverge.objects.meta import Object


class CacheOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The form in which objects are kept. Equal options share a cache.

    CacheOptions(metadata_only=True)
    """

    metadata_only: bool = False
    """The server sends metadata alone: names, labels, annotations, owners."""
    project: type[Any] | None = None
    """A smaller class with the fields that are read; the rest is not kept."""
    transform: Transform | None = None
    """Changes or trims each object, as plain data, before it is kept."""

    def check(self, kind: type[Object], what: str) -> None:
        """Refuse options that cannot work for a kind. Raises TypeError, which says what to write."""
        if self.project is None:
            return
        if self.metadata_only:
            raise TypeError(f"{what} has metadata_only=True and project=…: leave one of them out")
        resource = getattr(self.project, "resource", None)
        if resource != kind.resource:
            raise TypeError(
                f"project={self.project.__name__} of {what} is read as a class of its own, so it needs to say what it "
                f"is a part of: class {self.project.__name__}(Object): resource = {kind.__name__}.resource"
            )
        check_projection(self.project)
