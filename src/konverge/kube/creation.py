"""Refusals that are no failure: nothing can be made in a namespace that goes, and nothing needs to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.client import AlreadyExists, Forbidden, NotFound


@contextmanager
def creating() -> Iterator[None]:
    """Around the creation of something that may be there already, or whose namespace may be about to go."""
    try:
        yield
    except (AlreadyExists, NotFound):
        return
    except Forbidden as error:
        if not error.namespace_terminating:
            raise
