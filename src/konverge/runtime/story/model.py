"""The story of a reconcile as people and programs read it. As JSON the names are camelCase, and what is empty is
left out."""

from __future__ import annotations

from typing import Any

import msgspec

_IN_TEXT = 6
"""Changes of one write that its text has."""


class _Shown(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class FieldChange(_Shown, frozen=True):
    """One field before and after; UNSET (left out of the JSON) where there was or is none.

    Values of Secrets are not shown (`hidden`), and long ones are cut.
    """

    path: str
    old: Any = msgspec.UNSET
    new: Any = msgspec.UNSET
    hidden: bool = False

    def __str__(self) -> str:
        if self.hidden:
            return f"{self.path} changed (hidden)"
        if self.new is msgspec.UNSET:  # also when the old value is not known
            return f"{self.path} removed"
        if self.old is msgspec.UNSET:
            return f"{self.path} = {_text(self.new)}"
        return f"{self.path} {_text(self.old)} → {_text(self.new)}"


class Cause(_Shown, frozen=True):
    """Why it ran."""

    type: str
    """added, updated, deleted, listed, timer, resync, retry, or external."""
    text: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    fields: list[FieldChange] = []
    more_fields: int = 0
    """Changed fields that are not listed."""


class Read(_Shown, frozen=True):
    """What it read: one object by name, or a number of objects."""

    kind: str
    namespace: str = ""
    name: str = ""
    source: str = "cache"
    """cache or live."""
    query: str = ""
    """Of a list: its selector, or its index and value."""
    count: int | None = None
    seconds: float = 0.0
    error: str = ""


class Write(_Shown, frozen=True):
    """What it wrote, or tried to."""

    method: str
    kind: str
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    seconds: float = 0.0
    status: int = 0
    """The HTTP status of the answer; 0 where there was none."""
    error: str = ""
    resource_version: str = ""
    dry_run: bool = False
    changes: list[FieldChange] = []
    more_changes: int = 0
    not_kept: bool = False
    """The difference was too large to keep."""

    def __str__(self) -> str:
        what = f"{self.method} {self.kind} {self.name}{'/' + self.subresource if self.subresource else ''}"
        parts = [str(change) for change in self.changes[:_IN_TEXT]]
        more = len(self.changes) + self.more_changes - len(parts)
        parts += [f"and {more} more"] if more else []
        parts += [f"failed: {self.error}"] if self.error else []
        return f"{what}: {'; '.join(parts)}" if parts else what


class EventNote(_Shown, frozen=True):
    """An event that it recorded."""

    type: str
    reason: str
    message: str
    kind: str = ""
    name: str = ""


class ReconcileStory(_Shown, frozen=True):
    """One reconcile: why it ran, what it read and wrote, and how it ended."""

    controller: str
    kind: str
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    number: int = 0
    """Of the controller's reconciles, since its start."""
    began: str = ""
    """RFC 3339, with microseconds."""
    seconds: float = 0.0
    waited: float = 0.0
    """Seconds that the key was in the queue."""
    outcome: str = "done"
    """done, requeue, requeueAfter, error, or gone (the object did not exist any more)."""
    requeue_after: float = 0.0
    error: str = ""
    error_type: str = ""
    place: str = ""
    """The line of the author's code that the error came from."""
    reasons: list[Cause] = []
    reads: list[Read] = []
    writes: list[Write] = []
    events: list[EventNote] = []
    left_out: int = 0
    """Reads, writes and events beyond what is kept."""

    def __str__(self) -> str:
        end = self.outcome
        if self.error:
            end = f"{self.error_type}: {self.error}{f' at {self.place}' if self.place else ''}"
        elif self.requeue_after:
            end = f"comes back after {self.requeue_after:g} s"
        reasons = "; ".join(cause.text for cause in self.reasons) or "no reason"
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        writes = "".join(f"; {write}" for write in self.writes)
        return f"{self.controller} {name}: {end} (because: {reasons}){writes}"


class Running(_Shown, frozen=True):
    """A reconcile that has not ended."""

    controller: str
    kind: str
    namespace: str = ""
    name: str = ""
    seconds: float = 0.0


class Page(_Shown, frozen=True):
    """What `/debug/reconciles` answers."""

    manager: str
    time: str
    reconciles: list[ReconcileStory]
    """The latest first."""
    running: list[Running] = []
    left_out: int = 0
    """Reconciles that are kept and match, beyond the limit."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
