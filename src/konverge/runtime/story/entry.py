"""What one reconcile did, as it is noted while it runs: references alone, a few attribute stores and appends.

Objects are kept as the bytes that the cache or the wire had anyway, and the notes themselves are structs that the
garbage collector does not look at: they hold neither exceptions nor anything else that could refer back to them. All
lists have a bound: a reconcile that reads ten thousand objects, or a task that it left behind, fills no memory.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge import clock
from konverge.cache.record import Record
from konverge.client.call import Call
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.reasons import Changed
from konverge.runtime.result import DONE, Result

MAX_READS = 64
MAX_CALLS = 64
MAX_EVENTS = 16
MAX_BYTES = 64 * 1024
"""Of the content of one write: what is larger is kept without its difference."""
MAX_TEXT = 2_000
"""Characters of an error or of an event's message."""

_FIXED = 400
"""Bytes that an entry has in any case."""
_PER_NOTE = 120


class CallNote(msgspec.Struct, gc=False):
    """One request to the API server."""

    verb: str
    resource: Resource | None
    namespace: str
    name: str
    subresource: str
    content_type: str
    path: str
    dry_run: bool
    body: bytes
    before: Record | None
    """The object in the cache, when the request was made."""
    began: float
    size: int = 0
    """Bytes of content that are kept."""
    after: bytes = b""
    """The object as the server answered, where that says more than what was sent."""
    seconds: float = -1.0
    """Negative until it is answered."""
    status: int = 0
    version: str = ""
    """The resourceVersion that the write made."""
    error: str = ""
    large: bool = False
    """Its content was too large to keep."""

    def answered(self, status: int, answer: bytes, version: str) -> None:
        """`answer` is the object as it is now, or nothing."""
        self.seconds = clock.monotonic() - self.began
        self.status, self.version = status, version
        if answer and self.before is not None:
            self.size += len(answer) - len(self.body)
            self.after, self.body = answer, b""
        if self.size > MAX_BYTES:
            self.let_go()

    def failed(self, error: BaseException) -> None:
        self.status = getattr(error, "code", 0)
        self.error = (str(error) or type(error).__name__)[:MAX_TEXT]
        self.seconds = clock.monotonic() - self.began
        if self.size > MAX_BYTES:
            self.let_go()

    def let_go(self) -> None:
        """Of the content."""
        self.large = self.large or self.size > 0
        self.before, self.body, self.after, self.size = None, b"", b"", 0


class Entry(msgspec.Struct, gc=False, eq=False):
    """One reconcile."""

    key: Any
    reasons: tuple[object, ...]
    waited: float
    began: float
    """By the loop's clock."""
    number: int = 0
    seconds: float = -1.0
    """Negative while it runs."""
    result: Result = DONE
    error: str = ""
    error_type: str = ""
    place: str = ""
    gone: bool = False
    """The object did not exist any more."""
    # Tuples, not lists: most reconciles note little, and what is empty is not allocated.
    reads: tuple[tuple[Any, str, str, int], ...] = ()
    """Kind, namespace, name (or index or selector) and how many objects; -1 for a read of one object by name."""
    calls: tuple[CallNote, ...] = ()
    events: tuple[tuple[str, str, str, str, str], ...] = ()
    """Type, reason, message, and kind and name of the object."""
    left_out: int = 0
    """Reads, calls and events that are not kept."""
    size: int = 0
    dropped: bool = False

    def read(self, kind: Any, namespace: str, name: str, count: int = -1) -> None:
        """Something was read from the cache."""
        if len(self.reads) < MAX_READS:
            self.reads += ((kind, namespace, name, count),)
        else:
            self.left_out += 1

    def called(self, call: Call, before: Record | None) -> CallNote | None:
        """A request begins; None when it is not kept. What comes after the end belongs to a task that was left."""
        if self.seconds >= 0 or len(self.calls) >= MAX_CALLS:
            self.left_out += 1
            return None
        if before is not None:
            before = self._written(call) or before
        note = CallNote(
            call.verb,
            call.resource,
            call.namespace,
            call.name,
            call.subresource,
            call.content_type,
            call.path,
            "dryRun" in call.query,
            call.body,
            before,
            clock.monotonic(),
            len(call.body) if before is None else len(call.body) + len(before.raw),
        )
        self.calls += (note,)
        return note

    def _written(self, call: Call) -> Record | None:
        """The object as an earlier write of this reconcile left it: the cache may not show that yet."""
        for note in reversed(self.calls):
            if (
                note.after
                and note.name == call.name
                and (note.resource, note.namespace)
                == (
                    call.resource,
                    call.namespace,
                )
            ):
                return Record(note.after, 0, "", 0)
        return None

    def event(self, kind: str, reason: str, message: str, about: Object) -> None:
        """An event was recorded, of the type `kind`."""
        if len(self.events) < MAX_EVENTS:
            of = about.kind or type(about).__name__
            self.events += ((kind, reason, message[:MAX_TEXT], of, about.metadata.name),)
        else:
            self.left_out += 1

    def failed(self, error: BaseException, text: str, place: str) -> None:
        """The error itself is not kept: it would keep the frames that it went through."""
        self.error, self.error_type, self.place = text[:MAX_TEXT], type(error).__name__, place

    def measure(self) -> int:
        """The bytes that it keeps alive, about; a record that the cache has too counts as well."""
        size = _FIXED + _PER_NOTE * len(self.reads)
        for reason in self.reasons:
            if type(reason) is Changed:
                old, new = reason.change.old, reason.change.new
                if old is not None:
                    size += len(old.raw)
                if new is not None:
                    size += len(new.raw)
        for note in self.calls:
            size += note.size + _PER_NOTE
        self.size = size
        return size

    def shorten(self) -> None:
        """Let go of the objects: what is left says what happened, not which fields."""
        self.reasons = tuple(_short(reason) for reason in self.reasons)
        for note in self.calls:
            note.let_go()
        self.measure()


class Shortened(str):
    """The text of a reason whose objects were too large to keep."""

    __slots__ = ()


def _short(reason: object) -> object:
    if not isinstance(reason, Changed):
        return reason
    change = reason.change
    how = "listed" if change.initial else change.type.value
    return Shortened(f"{reason.kind} {change.key} {how} (its fields were too large to keep)")
