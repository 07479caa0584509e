"""A watch as a pure state machine: lines in, changes out.

The vocabulary is kube-rs's (Init, InitApply, InitDone, Apply, Delete, Bookmark), the resourceVersion policy
client-go's:

- the first state comes as a stream (`sendInitialEvents`) that ends with an annotated bookmark; where a server refuses
  that, as a paged list followed by a watch;
- a watch that ends is resumed from the newest version seen, bookmarks included;
- 410, in the answer or in the stream, means that the history is gone: list again, and let the store find the
difference;
- an event at or below the position of the stream was seen before and is dropped: positions only rise. Only deletions
share a version: of objects on one etcd lease, as Events are, hundreds go in one transaction. So one at the position
that names what is still here counts, and a watch that ended with a deletion is resumed one version earlier.

Upstream: handleAnyWatch, watchList and list (client-go's tools/cache/reflector.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from konverge.cache.quarantine import READ
from konverge.cache.record import Key, Meta, Record, identify, number, receive
from konverge.cache.store import SLICE, Change, Replacement, Store
from konverge.client.watch import Blocks, split_event

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
        """The history is gone: a new list is needed. Upstream: isExpiredError."""
        return self.code == 410 or self.reason in ("Expired", "Gone", "ResourceExpired")


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


_bookmark = msgspec.json.Decoder(_Bookmark)
_status = msgspec.json.Decoder(_Status)

Receive = Callable[[bytes], tuple[Key, Record, Meta]]


class Watching(msgspec.Struct):
    """The state of a watch: the store it feeds, the list in progress, and how far the stream was read."""

    store: Store
    receive: Receive = receive
    namespace: str = ""
    """What it lists; empty for all namespaces."""
    synced: bool = False
    """The first list is complete: from now on the store shows the server's state at some moment."""
    position: int = 0
    """The newest version seen on the stream; 0 means that a list is needed."""
    lists: int = 0
    """Lists that were begun."""
    listed: int = 0
    """The number of the last one that was completed."""
    bookmarks: int = 0
    """Bookmarks seen on this connection: a server that sends them is never silent for long."""
    _deleted: int = 0
    """The version of the last deletion."""
    _listing: bool = False
    _list: Replacement | None = None
    _unread: dict[Key, str] = msgspec.field(default_factory=dict)
    """Key -> uid of objects in the present list that cannot be read."""
    _blocks: Blocks = msgspec.field(default_factory=Blocks)

    # -------------------------------------------------------------- listing

    def begin_list(self) -> None:
        """Init: what comes next is a whole list, until `end_list` or the bookmark that ends the initial events.

        The very first list goes straight into the empty store: no reader uses it before it has synced, and twenty
        thousand objects need not exist twice. Any later list is compared with the stored state.
        """
        self._listing = True
        self._unread = {}
        self.lists += 1
        self._list = None if self.store.count == 0 and not self.synced else self.store.replacement()
        self.position = 0

    def add_listed(self, raws: Iterable[bytes]) -> list[Change]:
        """InitApply, for a page of objects."""
        return [change for raw in raws if (change := self._take("ADDED", raw))]

    def add_to_list(self, raw: bytes) -> Change | None:
        """InitApply."""
        key, record, meta = self.receive(raw)
        store = self.store
        if store.quarantine.entries:
            store.quarantine.release(key, READ)
        if self._list is None:
            return store.apply(key, record, meta, initial=True)
        self._list.add(key, record)
        return None

    def _left_list(self, raw: bytes) -> Change | None:
        """A deletion before the list's end: some servers send events between the initial ones and the bookmark."""
        key, _, _ = identify(raw)
        self._unread.pop(key, None)
        if self._list is None:
            return self.store.delete(key)
        self._list.drop(key)
        return None

    def end_list(self, version: int) -> Iterator[list[Change]]:
        """InitDone: the difference to the stored state becomes visible, in slices."""
        if self._list is not None:
            yield from self._list.commit(version)
        for entry in self.store.quarantine:
            if entry.key not in self._unread and self._is_ours(entry.key) and self.store.get(entry.key) is None:
                self.store.quarantine.forget(entry.key)
        self._listing = False
        self._list = None
        self.synced = True
        self.listed = self.lists
        self.position = self.store.version = version

    @property
    def listing(self) -> bool:
        return self._listing

    @property
    def resume_from(self) -> int:
        """The version that a new watch begins after. More deletions of the last one's version may be to come."""
        return self.position - 1 if self.position == self._deleted else self.position

    # -------------------------------------------------------------- watching

    def reset_stream(self) -> None:
        """A new connection: a partial line and a partial list of the old one are dropped."""
        self._blocks = Blocks()
        self._listing = False
        self._list = None
        self.bookmarks = 0

    def feed(self, chunk: bytes) -> Iterator[list[Change]]:
        """Bytes from the stream, cut anywhere; yields the changes they make, in slices, so that other tasks can run
        between.

        Raises WatchError when the server ends the watch with an error.
        """
        changes: list[Change] = []
        block = self._blocks.feed(chunk)
        try:
            for line in block.split(b"\n") if block else ():
                if not line:
                    continue
                kind, raw = split_event(line)
                if kind == "BOOKMARK":
                    yield changes
                    changes = []
                    yield from self._on_bookmark(raw)
                elif kind == "ERROR":
                    raise _error(raw)
                elif change := self._take(kind, raw):
                    changes.append(change)
                    if len(changes) >= SLICE:
                        yield changes
                        changes = []
        except Exception:
            yield changes  # they are in the store: handlers must see them, whatever follows
            raise
        yield changes

    def _take(self, kind: str, raw: bytes) -> Change | None:
        try:
            if not self._listing:
                return self._on_event(kind, raw)
            return self._left_list(raw) if kind == "DELETED" else self.add_to_list(raw)
        except Exception as error:  # a transform is the author's; and one object must not end the cache
            return self._set_aside(kind, raw, error)

    def _on_event(self, kind: str, raw: bytes) -> Change | None:
        key, record, meta = self.receive(raw)
        if 0 < record.version <= self.position and not self._is_shared(kind, key, record.version, record.uid):
            return None
        self._advance(record.version)
        self.store.quarantine.release(key, READ)
        if kind == "DELETED":
            self._deleted = record.version
            return self.store.delete(key)
        return self.store.apply(key, record, meta)

    def _set_aside(self, kind: str, raw: bytes, error: Exception) -> Change | None:
        """An object that cannot be received: reported, and left as it is in the store. Raises where it has no name."""
        key, version, uid = identify(raw)
        quarantine = self.store.quarantine
        if self._listing:
            self._unread[key] = uid
            if self._list is not None:
                self._list.unread[key] = uid
        else:
            if 0 < version <= self.position and not self._is_shared(kind, key, version, uid):
                return None
            self._advance(version)
            if kind == "DELETED":
                self._deleted = version
                quarantine.forget(key)
                return self.store.delete(key)
        quarantine.report(key, version, uid, READ, error)
        return None

    def _is_shared(self, kind: str, key: Key, version: int, uid: str) -> bool:
        """Whether an event that is not newer than the last one is a deletion of the same version, and was not seen."""
        if kind != "DELETED" or version < self.position:
            return False
        known = self.store.get(key), self.store.quarantine.unread(key)
        return any(state is not None and state.uid == uid and state.version < version for state in known)

    def _on_bookmark(self, raw: bytes) -> Iterator[list[Change]]:
        meta = _bookmark.decode(raw).metadata
        version = number(meta.resource_version)
        self.bookmarks += 1
        if not self._listing:
            self._advance(version)
        elif meta.annotations.get(INITIAL_EVENTS_END) == "true":
            yield from self.end_list(version)

    def _is_ours(self, key: Key) -> bool:
        return not self.namespace or key.namespace == self.namespace

    def _advance(self, version: int) -> None:
        self.position = max(self.position, version)
        self.store.version = max(self.store.version, version)


def _error(raw: bytes) -> WatchError:
    status = _status.decode(raw)
    retry_after = status.details.retry_after_seconds if status.details else 0
    return WatchError(status.code, status.reason, status.message, retry_after)
