"""Where a story comes from, where the server is in this process: every change, and every reconcile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

from konverge.explain import Ref
from konverge.runtime.story.model import ReconcileStory


class Change(NamedTuple):
    """One write, as the store has it. The objects are JSON, without `kind` and `apiVersion`."""

    revision: int
    time: float
    group: str
    plural: str
    namespace: str
    name: str
    old: bytes | None
    """None: it was created."""
    new: bytes | None
    """None: it was deleted."""


class History(Protocol):
    """The changes that a server remembers."""

    @property
    def oldest(self) -> int:
        """The oldest revision whose state is known."""

    @property
    def newest(self) -> int: ...

    def changes(self, since: int) -> Iterable[Change]:
        """What was written after a revision, the latest first."""


Reconciles = Callable[[Ref, int], Awaitable[list[ReconcileStory]]]
"""The latest reconciles of an object, or those that wrote it: at most so many."""
