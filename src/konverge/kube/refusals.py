"""Refusals that are no failure: nothing can be made in a namespace that goes, and nothing needs to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.client import AlreadyExists, Forbidden, NotFound


def namespace_goes(error: Forbidden) -> bool:
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


@contextmanager
def creating() -> Iterator[None]:
    """Around the creation of something that may be there already, or whose namespace may be about to go."""
    try:
        yield
    except (AlreadyExists, NotFound):
        return
    except Forbidden as error:
        if not namespace_goes(error):
            raise
