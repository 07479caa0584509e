"""Creating objects that may exist already, or whose namespace is being deleted: neither is a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.client import AlreadyExists, Forbidden, NotFound


@contextmanager
def creating() -> Iterator[None]:
    """Ignores that the object exists already, and that its namespace is gone or being deleted."""
    try:
        yield
    except (AlreadyExists, NotFound):
        return
    except Forbidden as error:
        if not error.namespace_terminating:
            raise
