"""The rows of the log: how the changes of a group are packed, and the events that they were.

A row is an undo log: of each change only what was before it (and, for a deletion, the last state that watchers saw).
What came after a change is in the next change of the same key, or in the present state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from konverge.apiserver.storage.integrity import State
from konverge.apiserver.storage.records import Event, Record, record_from
from konverge.apiserver.storage.store import Store

Entry = tuple[str, Event]
Change = tuple[int, str, str, float, bytes | None, bytes | None]
"""One change in the log: its revision, table, key and time, the state before, the last state if it was a deletion."""

_changes = msgspec.msgpack.Decoder(list[Change])


def packed(group: Iterable[Entry]) -> bytes:
    """The row of a group."""
    return msgspec.msgpack.encode([_change(table, event) for table, event in group])


def unpacked(row: bytes) -> list[Change]:
    """The changes of a row, in their order. Raises msgspec.MsgspecError."""
    changes: list[Change] = _changes.decode(row)
    return changes


def events(store: Store, state: State) -> Iterator[Entry]:
    """The history, newest first: the state before a change is the result of the change before it."""
    after: dict[tuple[str, str], Record | None] = {}
    for revision, table, key, time, old_data, final_data in _logged(state):
        old = record_from(old_data) if old_data is not None else None
        final = record_from(final_data) if final_data is not None else None
        if final is None:
            record = after[table, key] if (table, key) in after else store.table(table).records.get(key)
        else:
            record = None
        after[table, key] = old
        yield table, Event(revision, key, time, record, old, final)


def _logged(state: State) -> Iterator[Change]:
    """The changes that the log holds, newest first."""
    compacted = state.seal.compacted
    for revision, row, _ in reversed(state.log):
        if revision > compacted:
            yield from (change for change in reversed(unpacked(row)) if change[0] > compacted)


def _change(table: str, event: Event) -> Change:
    old, final = event.old, event.final
    return (
        event.revision,
        table,
        event.key,
        event.time,
        None if old is None else old.data,
        None if final is None else final.data,
    )
