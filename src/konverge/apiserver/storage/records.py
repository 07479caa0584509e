"""What the store keeps of an object, and of a change.

An object is its JSON bytes plus the few members that lists and watches need without decoding it. Records are immutable
and invisible to the garbage collector: a store of a hundred thousand objects costs no collection time.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from konverge.apiserver.go import json_pieces
from konverge.apiserver.nesting import MOST_STORED, is_too_deep

Obj = dict[str, Any]

_encoder = msgspec.json.Encoder()
encode = _encoder.encode


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object at one revision. `data` is its JSON without `kind` and `apiVersion`."""

    namespace: str
    name: str
    revision: int
    data: bytes
    labels: dict[str, str] | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def decode(self) -> Obj:
        """A fresh copy of the object, free to change."""
        obj: Obj = json_pieces.decode(self.data)
        return obj


class Release(msgspec.Struct, frozen=True, gc=False):
    """What the write that removed an object did to its finalizers: watchers see the object as it was stored before."""

    dropped: tuple[str, ...]
    """Finalizers that this very write removed."""
    by_update: bool
    """The write was no deletion: it completed one that had been requested before."""


class Event(msgspec.Struct, gc=False):
    """One change: `record` is None after a deletion, `old` is None before a creation.

    `final` is the last state of a deleted object with the revision of its deletion, as watchers see it. `frames` holds
    the encoded forms while the event is being delivered, so that each is encoded once for all watchers.
    """

    revision: int
    key: str
    time: float
    record: Record | None
    old: Record | None
    final: Record | None = None
    frames: dict[Any, bytes] | None = None
    release: Release | None = None
    """Of a removal: what the removing write did; None if it left the object as it was."""

    @property
    def shown(self) -> Record:
        """What a watcher without selectors sees."""
        shown = self.record or self.final
        assert shown is not None
        return shown


def reverse(event: Event) -> Event:
    """The change back: what those see who follow a table, when a change turns out not to be on disk."""
    old, record = event.old, event.record
    return Event(
        event.revision if old is None else old.revision, event.key, event.time, old, record, None if old else record
    )


class _Meta(msgspec.Struct, gc=False):
    name: str
    resourceVersion: str  # noqa: N815 - the name on the wire
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head)


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A large object, encoded before its revision is known: the bytes before and after it."""

    before: bytes
    after: bytes

    def at(self, revision: int) -> bytes:
        """The object's bytes, with its revision."""
        return b"".join((self.before, b"%d" % revision, self.after))


_NO_REVISION = secrets.token_hex(16)
"""In place of the revision in a draft. No client can know it, so it is nowhere else in an object."""


def draft_of(obj: Obj, *, deeper: bool = True) -> Draft:
    """All of `record_of` that takes long. The object stays as it is, and must not change any more.

    With `deeper=False` it is a stored object with changes that cannot have made it deeper, which is not looked at.
    """
    unwritten = {**obj, "metadata": {**obj["metadata"], "resourceVersion": _NO_REVISION}}
    data = _encoded(unwritten) if deeper else _stored_form(unwritten)
    before, _, after = data.partition(_NO_REVISION.encode())
    return Draft(before, after)


def redrafted(record: Record) -> Draft:
    """A stored object, to be written again as it is."""
    return draft_of(record.decode())


def _stored_form(obj: Obj) -> bytes:
    return encode({key: value for key, value in obj.items() if key not in ("kind", "apiVersion")})


def _encoded(obj: Obj) -> bytes:
    data = _stored_form(obj)
    if is_too_deep(data, MOST_STORED):
        raise RecursionError("an object is nested too deeply to be stored")
    return data


def record_of(obj: Obj, revision: int, draft: Draft | None = None) -> Record:
    """Encode an object at the revision of its write, which becomes its resourceVersion."""
    metadata = obj["metadata"]
    metadata["resourceVersion"] = str(revision)
    data = _encoded(obj) if draft is None else draft.at(revision)
    labels = metadata.get("labels")
    return Record(metadata.get("namespace", ""), metadata["name"], revision, data, dict(labels) if labels else None)


def record_from(data: bytes) -> Record:
    """Read a record back from its bytes."""
    metadata = _head.decode(data).metadata
    return Record(metadata.namespace, metadata.name, int(metadata.resourceVersion), data, metadata.labels)


def restamped(record: Record, revision: int) -> Record:
    """The same state at another revision: how a watcher sees an object leave."""
    obj = record.decode()
    return record_of(obj, revision)
