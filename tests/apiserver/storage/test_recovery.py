"""The journal comes back when the disk does: memory is the disk, and no revision is given twice."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver.storage import Event, HistoryLimits, Store
from konverge.apiserver.storage import sqlite as journals
from konverge.apiserver.storage.failures import Failed, InDoubt, Lost
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.sqlite import SqliteJournal
from konverge.apiserver.storage.witness import marks
from konverge.apiserver.storage.worker import Worker
from tests.apiserver.robustness.story import submit_late
from tests.apiserver.storage.faulty_disk import BROKEN, CORRUPT, FULL, Fault, FaultyDisk, Kind

pytestmark = [pytest.mark.virtual, pytest.mark.spec("T-05")]


class Seen:
    """A watcher."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def deliver(self, event: Event) -> None:
        self.events.append(event)

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


@pytest.fixture(autouse=True)
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "LOG_BYTES", 64 * 1024)


def obj(name: str, value: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": value}


def opened(folder: Path, disk: FaultyDisk) -> Store:
    journal = SqliteJournal(folder / "state.db", disk)
    store = Store(journal=journal)
    journal.load(store)
    return store


def state(store: Store) -> dict[str, str]:
    return {record.key: record.decode()["data"] for record in store.table("t").at(store.durable)}


async def on_disk(folder: Path) -> tuple[dict[str, str], int]:
    """What a new process finds there."""
    store = opened(folder, FaultyDisk())
    found = state(store), store.revision
    await store.close()
    return found


async def put(store: Store, name: str, value: str = "") -> int:
    record = store.put(store.table("t"), obj(name, value), expected=None)
    await store.settled(record.revision)
    return record.revision


async def healed(store: Store, disk: FaultyDisk) -> None:
    disk.work()
    await asyncio.sleep(5)
    assert store.failure is None


FAULTS: dict[str, tuple[Kind, Fault]] = {
    "full, in a statement": ("statement", Fault(FULL)),
    "broken, in a statement": ("statement", Fault(BROKEN)),
    "full, in the commit": ("commit", Fault(FULL)),
    "broken, in the commit": ("commit", Fault(BROKEN)),
}


@pytest.mark.parametrize("case", FAULTS)
async def test_what_did_not_reach_the_disk_never_was(tmp_path: Path, case: str) -> None:
    kind, fault = FAULTS[case]
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    table, seen = store.table("t"), Seen()
    table.watch("", seen)
    acknowledged = [await put(store, "kept", "1"), await put(store, "removed", "1")]
    disk.fail(kind, fault=fault)
    new = store.put(table, obj("new"), expected=0)
    changed = store.put(table, obj("kept", "2"), expected=None)
    store.remove(table, "removed", expected=None)
    again = store.put(table, obj("removed", "2"), expected=0)
    for record in (new, changed, again):
        with pytest.raises(Failed, match=str(tmp_path)):
            await store.settled(record.revision)
    assert store.failure is not None
    with pytest.raises(Failed):
        store.put(table, obj("later"), expected=0)
    await asyncio.sleep(30)
    assert state(store) == {"kept": "1", "removed": "1"}
    await healed(store, disk)
    assert seen.revisions == acknowledged
    assert {key: record.decode()["data"] for key, record in table.records.items()} == state(store)
    assert table.keys() == ["kept", "removed"]
    assert [event.revision for event in table.events] == acknowledged
    assert await put(store, "kept", "3") > again.revision
    assert state(store) == {"kept": "3", "removed": "1"}
    await store.close()
    assert await on_disk(tmp_path) == ({"kept": "3", "removed": "1"}, store.revision)


@pytest.mark.parametrize("error", [FULL, BROKEN])
async def test_a_commit_that_reported_an_error_may_have_passed(tmp_path: Path, error: str) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    seen = Seen()
    store.table("t").watch("", seen)
    disk.fail_once("commit", Fault(error, late=True))
    first = store.put(store.table("t"), obj("a"), expected=0)
    await asyncio.sleep(0)
    second = store.put(store.table("t"), obj("b"), expected=0)  # it waits for the next group
    results = await asyncio.gather(*map(store.settled, (first.revision, second.revision)), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), Failed]
    await healed(store, disk)
    assert state(store) == {"a": ""}
    assert seen.revisions == [first.revision]
    assert await put(store, "c") > second.revision
    await store.close()
    assert (await on_disk(tmp_path))[0] == {"a": "", "c": ""}


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("kind", ["connect", "rewrite", "statement", "sync"])
async def test_a_disk_that_does_not_answer_leaves_writers_in_doubt(tmp_path: Path, kind: Kind, late: bool) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    before = await put(store, "before")
    disk.keeps_log = kind == "rewrite"

    def plan(called: Kind) -> Fault | None:
        if called == "commit":
            return Fault(BROKEN, late=late)
        return Fault(BROKEN) if called == kind and store.failure is not None else None

    disk.plan = plan
    record = store.put(store.table("t"), obj("x"), expected=0)
    with pytest.raises(InDoubt):
        await store.settled(record.revision)
    with pytest.raises(InDoubt):
        await store.settled(record.revision)
    assert (state(store), store.durable) == ({"before": ""}, before)
    await healed(store, disk)
    expected = {"before": "", "x": ""} if late else {"before": ""}
    assert state(store) == expected
    assert await put(store, "after") > record.revision
    await store.close()
    assert (await on_disk(tmp_path))[0] == {**expected, "after": ""}


async def test_a_full_disk_is_tried_every_second_without_opening_it_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    disk.fail("commit", "checkpoint")
    with pytest.raises(Failed):
        await put(store, "b")
    await asyncio.sleep(0.5)
    disk.calls.clear()
    await asyncio.sleep(10)
    assert disk.calls == ["checkpoint"] * 10
    await healed(store, disk)
    assert await put(store, "c")
    await store.close()


async def test_the_space_of_the_log_is_part_of_the_recovery(tmp_path: Path) -> None:
    """Otherwise the journal would come back for one small write."""
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    disk.fail("commit", "preallocate")
    with pytest.raises(Failed):
        await put(store, "a")
    disk.fail("preallocate")
    await asyncio.sleep(10)
    with pytest.raises(Failed):
        await put(store, "a")
    await healed(store, disk)
    assert (tmp_path / "state.db-wal").stat().st_size >= journals.LOG_BYTES
    await put(store, "a")
    await store.close()


async def test_the_space_of_the_log_is_synced(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    syncs = 0

    def plan(kind: Kind) -> Fault | None:
        nonlocal syncs
        syncs += kind == "sync"
        if kind == "sync":
            return Fault(BROKEN) if syncs % 2 == 0 else None  # first the folder, then the log
        return Fault(BROKEN) if kind == "commit" and not syncs else None

    disk.plan = plan
    with pytest.raises(Failed):
        await put(store, "b")
    await asyncio.sleep(10)
    assert store.failure is not None
    await healed(store, disk)
    await put(store, "b")
    await store.close()


async def test_a_broken_disk_is_opened_again_for_every_try(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    disk.fail("commit", "checkpoint", fault=Fault(BROKEN))
    with pytest.raises(Failed):
        await put(store, "b")
    await asyncio.sleep(0.5)
    disk.calls.clear()
    await asyncio.sleep(10)
    assert disk.calls.count("connect") == disk.calls.count("checkpoint") == 10
    await healed(store, disk)
    await store.close()


async def test_the_witness_knows_what_watchers_see(tmp_path: Path) -> None:
    """Also a commit that reported an error: a damage that takes it away would not show otherwise."""
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    known: list[tuple[int, int]] = []

    def changed(event: Event) -> None:
        known.append((event.revision, max(mark.revision for mark in marks(tmp_path / "state.db") if mark)))

    store.subscribe("t", changed)
    revisions = [await put(store, "a")]
    disk.fail_once("commit", Fault(BROKEN, late=True))
    revisions.append(await put(store, "b"))
    assert known == [(revision, revision) for revision in revisions]
    await store.close()


@pytest.mark.parametrize("error", [FULL, BROKEN])
async def test_a_checkpoint_that_fails_loses_nothing(
    tmp_path: Path, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "CHECKPOINT_BYTES", 1000)
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    disk.fail("checkpoint", fault=Fault(error))
    big = await put(store, "big", "x" * 2000)  # stored; the checkpoint comes after it
    await asyncio.sleep(0)
    with pytest.raises(Failed):
        await put(store, "refused")
    await asyncio.sleep(10)
    assert store.failure is not None
    await healed(store, disk)
    assert state(store) == {"big": "x" * 2000}
    assert await put(store, "after") > big
    await store.close()
    assert set((await on_disk(tmp_path))[0]) == {"big", "after"}


async def test_a_try_that_fails_after_its_commit_takes_a_revision_of_its_own(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    disk.fail_once("commit")
    with pytest.raises(Failed):
        await put(store, "a")
    commits: Iterator[Fault | None] = iter([Fault(BROKEN, late=True)] * 3)
    disk.plan = lambda kind: next(commits, None) if kind == "commit" else None
    await asyncio.sleep(30)
    assert store.failure is None
    durable = store.durable
    assert await put(store, "b") == durable + 1
    await store.close()
    assert await on_disk(tmp_path) == ({"b": ""}, durable + 1)


async def test_the_history_goes_on_where_it_was(tmp_path: Path) -> None:
    disk = FaultyDisk()
    journal = SqliteJournal(tmp_path / "state.db", disk)
    store = Store(history=HistoryLimits(events=3), journal=journal)
    journal.load(store)
    table = store.table("t")
    await put(store, "a", "1")
    disk.fail("commit")
    for value in "234":
        store.put(table, obj("a", value), expected=None)
    with pytest.raises(Failed):
        await store.settled(store.revision)
    await healed(store, disk)
    for value in "5678":
        await put(store, "a", value)
    kept = [event.revision for event in table.events]
    assert kept == [
        revision for revision in range(store.revision - 3, store.revision + 1) if revision > store.compacted
    ]
    assert [record.decode()["data"] for record in table.at(store.revision - 1)] == ["7"]
    await store.close()


async def test_subscribers_see_the_change_back(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    table = store.table("t")
    changes: list[tuple[str, str | None, str | None]] = []

    def changed(event: Event) -> None:
        data = [record and record.decode()["data"] for record in (event.old, event.record)]
        assert event.shown.key == event.key
        changes.append((event.key, data[0], data[1]))

    await put(store, "a", "1")
    store.subscribe("t", changed)
    disk.fail("commit")
    store.put(table, obj("a", "2"), expected=None)
    store.put(table, obj("b", "1"), expected=0)
    last = store.remove(table, "a", expected=None)
    with pytest.raises(Failed):
        await store.settled(last.revision)
    assert changes == [("a", None, "2"), ("b", "1", None), ("a", "2", "1")]
    assert store.reverts == 1
    await healed(store, disk)
    await store.close()


async def test_a_commit_that_the_disk_dropped_is_lost(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    ended: list[str] = []
    store.on_end(lambda: ended.append(str(store.failure)))
    await put(store, "kept")
    disk.fail("commit", fault=Fault(lies=True))
    acknowledged = await put(store, "dropped")
    disk.fail_once("statement", Fault(BROKEN))
    with pytest.raises(Failed):
        await put(store, "x")
    await asyncio.sleep(10)
    assert isinstance(store.failure, Lost)
    assert len(ended) == 1
    assert f"up to revision {acknowledged}, but the disk holds revision {acknowledged - 1}" in ended[0]
    disk.work()
    await asyncio.sleep(10)
    with pytest.raises(Lost):
        store.put(store.table("t"), obj("y"), expected=0)
    await store.close()


@pytest.mark.parametrize("kind", ["statement", "commit", "checkpoint"])
async def test_a_damaged_database_is_lost(tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "CHECKPOINT_BYTES", 1)
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    await asyncio.sleep(1)
    disk.fail(kind, fault=Fault(CORRUPT))
    record = store.put(store.table("t"), obj("b"), expected=0)
    if kind == "checkpoint":
        await store.settled(record.revision)
    else:
        with pytest.raises(Failed):
            await store.settled(record.revision)
    await asyncio.sleep(1)
    assert isinstance(store.failure, Lost)
    await store.close()


async def test_a_database_that_is_gone_is_lost_and_not_made_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    (tmp_path / "state.db").unlink()
    (tmp_path / "state.db-wal").unlink()
    disk.fail_once("statement", Fault(BROKEN))
    with pytest.raises(Failed):
        await put(store, "b")
    await asyncio.sleep(1)
    assert isinstance(store.failure, Lost)
    assert not (tmp_path / "state.db").exists()
    await store.close()


@pytest.mark.parametrize("kind", ["connect", "preallocate"])
async def test_a_disk_that_is_full_at_start_is_refused(tmp_path: Path, kind: Kind) -> None:
    disk = FaultyDisk()
    disk.fail(kind)
    for _ in range(2):  # the second time: the lock of the folder is free
        with pytest.raises(FolderError, match=f"the disk of the data folder {tmp_path} is full .*: make room there"):
            opened(tmp_path, disk)
    disk.work()
    await opened(tmp_path, disk).close()


@pytest.mark.parametrize("answers", [True, False])
async def test_the_end_says_what_is_not_known(tmp_path: Path, answers: bool, caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a")
    disk.fail("commit", *(() if answers else ("connect",)), fault=Fault(BROKEN))
    with pytest.raises(Failed):
        await put(store, "b")
    await asyncio.sleep(5)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        await store.close()
    assert [("is not known" in message) for message in caplog.messages] == ([] if answers else [True])
    calls = len(disk.calls)
    await asyncio.sleep(60)
    assert len(disk.calls) == calls


async def test_what_is_written_at_the_moment_of_recovery_is_stored_in_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "submit", submit_late(random.Random(1)))
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    written: list[int] = []

    def write_at_once() -> None:
        written.append(store.put(store.table("t"), obj("first", "1"), expected=None).revision)

    store.on_recovery(write_at_once)
    disk.fail("commit", "checkpoint", "preallocate")
    with pytest.raises(Failed):
        await put(store, "refused")
    await asyncio.sleep(3)
    disk.work()
    while not written:
        await asyncio.sleep(0.0001)
    await put(store, "second", "2")
    await put(store, "third", "3")
    expected = state(store)
    await store.close()
    await asyncio.sleep(1)
    monkeypatch.undo()
    assert (await on_disk(tmp_path))[0] == expected == {"first": "1", "second": "2", "third": "3"}


async def test_a_state_of_others_does_not_get_our_witness(tmp_path: Path) -> None:
    """The disk comes back with another state: this is the end, and the next start must notice it as well."""
    disk = FaultyDisk()
    store = opened(tmp_path / "ours", disk)
    await put(store, "a")
    others = opened(tmp_path / "others", FaultyDisk())
    for number in range(5):
        await put(others, f"b{number}")
    await others.close()
    before = marks(tmp_path / "ours" / "state.db")
    disk.fail("statement")
    with pytest.raises(Failed):
        await put(store, "c")
    disk.work()
    for path in (tmp_path / "ours").glob("state.db-wal"):
        path.unlink()
    (tmp_path / "ours" / "state.db").write_bytes((tmp_path / "others" / "state.db").read_bytes())
    await asyncio.sleep(5)
    assert isinstance(store.failure, Lost)
    assert marks(tmp_path / "ours" / "state.db") == before
    await store.close()
