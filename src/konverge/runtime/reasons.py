"""Why a reconcile runs. A queue that removes duplicates forgets this, and then users cannot find out what an operator
is busy with (controller-runtime#1997, operator-sdk#3945). Here every key carries the reasons that were merged into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.cache.record import Key
from konverge.cache.store import Change, ChangeType

MAX_FIELDS = 8
"""Changed fields that the text of a reason names."""


class Changed(msgspec.Struct, frozen=True, gc=False):
    """A watched object was added, updated or deleted."""

    kind: str
    change: Change

    def __hash__(self) -> int:
        return hash((self.kind, self.change.key, self.change.latest.version))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Changed)
            and self.kind == other.kind
            and self.change.key == other.change.key
            and self.change.type is other.change.type
            and self.change.latest.version == other.change.latest.version
        )

    @property
    def fields(self) -> list[str]:
        """The fields that differ, as paths. Computed only when asked for."""
        old, new = self.change.old, self.change.new
        if old is None or new is None:
            return []
        return changed_fields(msgspec.json.decode(old.raw), msgspec.json.decode(new.raw))

    def __str__(self) -> str:
        if self.change.initial:
            return f"{self.kind} {self.change.key} listed"
        what = f"{self.kind} {self.change.key} {self.change.type.value}"
        if self.change.type is not ChangeType.UPDATED:
            return what
        fields = self.fields
        more = f" and {len(fields) - MAX_FIELDS} more" if len(fields) > MAX_FIELDS else ""
        return f"{what}: {', '.join(fields[:MAX_FIELDS])}{more}"


class Timer(msgspec.Struct, frozen=True):
    """The reconciler asked to come back."""

    after: float

    def __str__(self) -> str:
        return f"asked to come back after {self.after:g} s"


class Resync(msgspec.Struct, frozen=True):
    """The periodic reconcile of every object."""

    def __str__(self) -> str:
        return "resync"


class TakenOver(msgspec.Struct, frozen=True):
    """Another process had this key until now."""

    def __str__(self) -> str:
        return "taken over from another process"


class Retry(msgspec.Struct, frozen=True):
    """The previous attempt failed, or asked for another one."""

    attempt: int
    error: str = ""

    def __str__(self) -> str:
        return f"retry {self.attempt} after: {self.error}" if self.error else f"retry {self.attempt}"


class External(msgspec.Struct, frozen=True):
    """A source outside of Kubernetes asked for it."""

    source: str
    key: Key

    def __str__(self) -> str:
        return f"{self.source}: {self.key}"


Reason = Changed | Timer | Resync | TakenOver | Retry | External

_NOISE = {"metadata.resourceVersion", "metadata.managedFields"}


def changed_fields(old: Any, new: Any) -> list[str]:
    """The paths at which two JSON values differ, without the noise that every write makes.

    >>> changed_fields({"spec": {"replicas": 1, "a": [1]}}, {"spec": {"replicas": 2, "a": [1]}})
    ['spec.replicas']
    """
    return [path for path in _differences(old, new, "") if path not in _NOISE]


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _differences(left, right, f"{path}[{index}]")
    elif old != new:
        yield path
