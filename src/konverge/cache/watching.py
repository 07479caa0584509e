"""The life of a watch as a pure state machine: lines in, changes out.

The vocabulary is kube-rs's (Init, InitApply, InitDone, Apply, Delete, Bookmark), the resourceVersion policy
client-go's:

- the first state comes as a stream (`sendInitialEvents`) that ends with an annotated bookmark; where a server refuses
  that, as a paged list followed by a watch;
- a watch that ends is resumed from the newest version seen, bookmarks included;
- 410, in the answer or in the stream, means history is gone: list again, and let the store work out the difference;
- an event at or below the position of the stream is an echo and is dropped: positions only rise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from konverge.cache.record import Key, Meta, Record, number, receive
from konverge.cache.store import Change, Replacement, Store

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchError(Exception):
    """The server ended the stream with an error."""

    def __init__(self, code: int, reason: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message or reason or f"code {code}")
        self.code = code
        self.reason = reason
        self.retry_after = retry_after

    @property
    def expired(self) -> bool:
        """History is gone: a new list is needed."""
        return self.code == 410 or self.reason in ("Expired", "Gone", "ResourceExpired")


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta


class _Details(msgspec.Struct, rename="camel", gc=False):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, gc=False):
    code: int = 500
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_event = msgspec.json.Decoder(_Event)
_bookmark = msgspec.json.Decoder(_Bookmark)
_status = msgspec.json.Decoder(_Status)


@dataclass(slots=True)
class Watching:
    """Where a watch stands: the store it feeds, the list in progress if there is one, and how far the stream has
    come.
    """

    store: Store
    keep_managed_fields: bool = False
    synced: bool = False
    """The first list is complete: from now on the store has been the truth of some moment."""
    position: int = 0
    """The newest version seen on the stream; 0 means that a list is needed."""
    _list: Replacement | None = None
    _partial: list[bytes] = field(default_factory=list)

    # -------------------------------------------------------------- listing

    def begin_list(self) -> None:
        """Init: what comes next is a whole list, until `end_list` or the bookmark that ends the initial events."""
        self._list = self.store.replacement()
        self.position = 0

    def add_to_list(self, raw: bytes | msgspec.Raw) -> None:
        """InitApply."""
        assert self._list is not None
        self._list.add(*self._receive(raw))

    def end_list(self, version: int) -> list[Change]:
        """InitDone: the difference to what was known becomes visible."""
        assert self._list is not None
        changes = self._list.commit(version, initial=not self.synced)
        self._list = None
        self.synced = True
        self.position = version
        return changes

    @property
    def listing(self) -> bool:
        return self._list is not None

    # -------------------------------------------------------------- watching

    def reset_stream(self) -> None:
        """A new connection: half a line of the old one means nothing, and neither does half a list."""
        self._partial.clear()
        self._list = None

    def feed(self, chunk: bytes) -> list[Change]:
        """Bytes from the stream, cut anywhere. Raises WatchError when the server ends the watch with an error."""
        if b"\n" not in chunk:
            self._partial.append(chunk)
            return []
        if self._partial:
            self._partial.append(chunk)
            chunk = b"".join(self._partial)
            self._partial.clear()
        *lines, rest = chunk.split(b"\n")
        if rest:
            self._partial.append(rest)
        changes: list[Change] = []
        for line in lines:
            if line and not line.isspace():
                self._line(line, changes)
        return changes

    def _line(self, line: bytes, changes: list[Change]) -> None:
        event = _event.decode(line)
        if event.type == "BOOKMARK":
            changes.extend(self._on_bookmark(event.object))
        elif event.type == "ERROR":
            raise _error(event.object)
        elif self._list is not None:
            self.add_to_list(event.object)
        else:
            change = self._on_event(event)
            if change is not None:
                changes.append(change)

    def _on_event(self, event: _Event) -> Change | None:
        key, record, meta = self._receive(event.object)
        if record.version and record.version <= self.position:
            return None
        self._advance(record.version)
        if event.type == "DELETED":
            return self.store.delete(key)
        return self.store.apply(key, record, meta)

    def _on_bookmark(self, raw: msgspec.Raw) -> list[Change]:
        meta = _bookmark.decode(raw).metadata
        version = number(meta.resource_version)
        if self._list is not None and meta.annotations.get(INITIAL_EVENTS_END) == "true":
            return self.end_list(version)
        self._advance(version)
        return []

    def _advance(self, version: int) -> None:
        self.position = max(self.position, version)
        self.store.version = max(self.store.version, version)

    def _receive(self, raw: bytes | msgspec.Raw) -> tuple[Key, Record, Meta]:
        return receive(raw, keep_managed_fields=self.keep_managed_fields)


def _error(raw: msgspec.Raw) -> WatchError:
    status = _status.decode(raw)
    retry_after = status.details.retry_after_seconds if status.details else 0
    return WatchError(status.code, status.reason, status.message, retry_after)
