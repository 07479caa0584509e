"""The journal: what was settled is there after a restart, history included; nothing is shown before it is on disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.apiserver.storage import Event, HistoryLimits, Store
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.sqlite import SqliteJournal


def obj(name: str, value: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "labels": {"v": value}}, "data": value}


def opened(folder: Path, history: HistoryLimits | None = None) -> Store:
    journal = SqliteJournal(folder / "state.db")
    store = Store(history=history, journal=journal)
    journal.load(store)
    return store


def history(store: Store, table: str) -> list[tuple[int, str, Any, Any]]:
    def data(record: Any) -> Any:
        return record and record.decode()

    return [(e.revision, e.key, data(e.record), data(e.old)) for e in store.table(table).events]


@pytest.mark.spec("S-14")
async def test_state_and_history_survive_a_restart(tmp_path: Path) -> None:
    store = opened(tmp_path)
    table = store.table("a")
    for name in "xyz":
        store.put(table, obj(name, "1"), expected=0)
    store.put(table, obj("x", "2"), expected=None)
    store.put(table, obj("x", "3"), expected=None)
    store.remove(table, "ns/y", expected=None)
    store.put(table, obj("y", "again"), expected=0)
    store.remove(table, "ns/z", expected=None)
    await store.settled(store.revision)
    state, events, revision = dict(table.records), history(store, "a"), store.revision
    await store.close()

    again = opened(tmp_path)
    assert again.table("a").records == state
    assert history(again, "a") == events
    assert again.revision == again.durable == revision
    record = again.put(again.table("a"), obj("new"), expected=0)
    assert record.revision == revision + 1
    await again.settled(record.revision)
    await again.close()


async def test_watchers_are_notified_after_the_commit(tmp_path: Path) -> None:
    store = opened(tmp_path)
    seen: list[Event] = []
    store.subscribe("a", seen.append)
    record = store.put(store.table("a"), obj("x"), expected=0)
    assert not seen
    assert store.durable < record.revision
    await store.settled(record.revision)
    assert [event.record for event in seen] == [record]
    assert store.durable == record.revision
    await store.close()


async def test_compaction_survives_a_restart_and_the_log_shrinks(tmp_path: Path) -> None:
    store = opened(tmp_path, HistoryLimits(events=5))
    table = store.table("a")
    for number in range(40):
        record = store.put(table, obj("x", str(number)), expected=None)
        await store.settled(record.revision)
    compacted = store.compacted
    assert compacted > 0
    await store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        (rows,) = connection.execute("SELECT count(*) FROM log").fetchone()
    connection.close()
    assert rows <= 6
    again = opened(tmp_path)
    assert again.compacted == compacted
    assert len(again.table("a").events) == again.revision - compacted
    await again.close()


async def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(store.table("a"), obj("x"), expected=0)
    await store.settled(store.revision)
    with pytest.raises(FolderError, match=f"in use by process {os.getpid()}: "):
        SqliteJournal(tmp_path / "state.db")
    await store.close()


async def test_the_write_ahead_log_does_not_grow_with_every_crash(tmp_path: Path) -> None:
    """Servers that are killed never close it: the next one brings what it holds into the database."""
    sizes = []
    for life in range(4):
        store = opened(tmp_path)
        for number in range(20):
            store.put(store.table("a"), obj(f"{life}-{number}", "x" * 100_000), expected=0)
        await store.settled(store.revision)
        crashed = tmp_path.with_name(f"{tmp_path.name}-{life}")
        shutil.copytree(tmp_path, crashed)
        await store.close()
        tmp_path = crashed
        sizes.append((tmp_path / "state.db-wal").stat().st_size)
    assert max(sizes) == sizes[0]
    store = opened(tmp_path)
    assert len(store.table("a").records) == 80
    await store.close()


async def test_records_that_a_newer_schema_shows_otherwise_do_not_look_like_damage(tmp_path: Path) -> None:
    """The server replaces such records in memory, without a write (see crd/serving/manager.py)."""
    store = opened(tmp_path)
    table = store.table("a")
    for name in "xyz":
        store.put(table, obj(name, "1"), expected=0)
    await store.settled(store.revision)
    for key, record in table.records.items():
        table.records[key] = msgspec.structs.replace(record, data=record.data.replace(b'"1"', b'"one"'))
    store.put(table, obj("x", "2"), expected=None)
    store.remove(table, "ns/y", expected=None)
    await store.settled(store.revision)
    await store.close()
    again = opened(tmp_path)
    shown = {key: record.decode()["data"] for key, record in again.table("a").records.items()}
    assert shown == {"ns/x": "2", "ns/z": "1"}
    await again.close()
