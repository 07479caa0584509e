"""Any course of writes and faults of the disk: in the end memory, the disk and what was acknowledged are one."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.storage import Event, HistoryLimits, Missing, Store
from konverge.apiserver.storage import sqlite as journals
from konverge.apiserver.storage.failures import Failed, InDoubt
from konverge.apiserver.storage.sqlite import SqliteJournal
from konverge.sim import loop
from tests.apiserver.storage.faulty_disk import BROKEN, FULL, KINDS, Fault, FaultyDisk, Kind
from tests.sizes import examples

State = dict[tuple[str, str], int]
"""By table and key: the number of the write."""

WRITES = st.tuples(st.sampled_from(["put", "put", "remove"]), st.sampled_from("tu"), st.sampled_from("abc"))
FAULT = st.sampled_from([Fault(error, late) for error in (FULL, BROKEN) for late in (False, True)])
STEP = st.one_of(
    WRITES,
    WRITES,
    WRITES,
    st.tuples(st.just("once"), st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 3), FAULT), min_size=1)),
    st.tuples(st.just("always"), st.sets(st.sampled_from(KINDS), min_size=1), FAULT),
    st.tuples(st.just("keep the log"), st.booleans()),
    st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.0, 3.0])),
    st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.0, 3.0])),
    st.just(("work",)),
)
STEPS = st.lists(STEP, min_size=10, max_size=40)


class Course:
    """Runs the steps and notes what clients saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = FaultyDisk()
        self.store = opened(folder, self.disk)
        self.given: list[int] = []
        self.stored: dict[int, tuple[str, str, int | None]] = {}
        """What watchers saw, by revision."""
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()
        self.durable = 1
        self.waiting: list[asyncio.Task[None]] = []
        for name in "tu":
            self.store.table(name).watch("", Watcher(name, self))

    async def run(self, steps: list[Any]) -> None:
        for number, step in enumerate(steps):
            if step[0] == "once":
                self.disk.plan = planned(step[1])
            elif step[0] == "always":
                self.disk.fail(*sorted(step[1]), fault=step[2])
            elif step[0] == "work":
                self.disk.work()
            elif step[0] == "sleep":
                await asyncio.sleep(step[1])
            elif step[0] == "keep the log":
                self.disk.keeps_log = step[1]
            else:
                self.write(*step, number)
            self.check()
        self.disk.work()
        await asyncio.gather(*self.waiting)
        await asyncio.sleep(5)
        self.check()

    def write(self, what: str, table: str, key: str, number: int) -> None:
        store = self.store
        try:
            if what == "put":
                obj = {"metadata": {"name": key}, "n": number}
                revision = store.put(store.table(table), obj, expected=None).revision
            else:
                revision = store.remove(store.table(table), key, expected=None).revision
        except (Failed, Missing):
            return
        self.given.append(revision)
        self.waiting.append(asyncio.create_task(self.wait(revision)))

    async def wait(self, revision: int) -> None:
        try:
            await self.store.settled(revision)
        except InDoubt:
            return
        except Failed:
            self.refused.add(revision)
        else:
            assert revision in self.stored, "acknowledged before watchers saw it"
            self.acknowledged.add(revision)

    # --- what must hold

    def replayed(self) -> State:
        state: State = {}
        for table, key, number in self.stored.values():
            if number is None:
                del state[table, key]
            else:
                state[table, key] = number
        return state

    def check(self) -> None:
        store = self.store
        assert self.given == sorted(set(self.given)), "a revision was given twice"
        assert list(self.stored) == sorted(self.stored), "watchers saw a revision out of order"
        assert self.acknowledged <= self.stored.keys()
        assert not self.refused & self.stored.keys()
        assert self.durable <= store.durable <= store.revision
        self.durable = store.durable
        assert shown(store, store.durable) == self.replayed()
        for table in store.tables.values():
            assert table.keys() == sorted(table.records)


class Watcher:
    def __init__(self, table: str, course: Course) -> None:
        self._table = table
        self._course = course

    def deliver(self, event: Event) -> None:
        assert event.revision not in self._course.stored, "watchers saw a revision twice"
        number = None if event.record is None else event.record.decode()["n"]
        self._course.stored[event.revision] = (self._table, event.key, number)


def planned(faults: list[tuple[Kind, int, Fault]]) -> Any:
    """Each of the faults at the n-th call of its kind."""
    counts = dict.fromkeys(KINDS, 0)

    def plan(kind: Kind) -> Fault | None:
        counts[kind] += 1
        return next((fault for of, at, fault in faults if of == kind and at == counts[kind]), None)

    return plan


def opened(folder: Path, disk: FaultyDisk) -> Store:
    journal = SqliteJournal(folder / "state.db", disk)
    store = Store(history=HistoryLimits(events=8), journal=journal)
    journal.load(store)
    return store


def shown(store: Store, revision: int) -> State:
    tables = store.tables.items()
    return {(name, record.key): record.decode()["n"] for name, table in tables for record in table.at(revision)}


def present(store: Store) -> State:
    """With what is not on disk."""
    tables = store.tables.items()
    return {(name, key): record.decode()["n"] for name, table in tables for key, record in table.records.items()}


def history(store: Store) -> list[tuple[str, int, str, Any, Any]]:
    return [
        (name, event.revision, event.key, event.record and event.record.data, event.old and event.old.data)
        for name, table in sorted(store.tables.items())
        for event in table.events
    ]


async def play(folder: Path, steps: list[Any]) -> None:
    course = Course(folder)
    await course.run(steps)
    store = course.store
    assert store.failure is None, store.failure
    assert store.revision == store.durable
    assert present(store) == course.replayed()
    # One more write, so that what the store has dropped from its history is dropped on disk.
    course.write("put", "t", "end", -1)
    await asyncio.sleep(1)
    course.check()
    last = course.given[-1]
    assert last in course.acknowledged
    await store.close()
    again = opened(folder, FaultyDisk())
    assert shown(again, again.durable) == course.replayed()
    assert history(again) == history(store)
    assert (again.revision, again.compacted) == (store.revision, store.compacted)
    await again.close()


@pytest.mark.spec("T-05", "T-01", "S-14")
@settings(max_examples=examples(0.5), deadline=None)
@given(steps=STEPS)
def test_memory_the_disk_and_what_was_acknowledged_are_one(steps: list[Any]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(journals, "LOG_BYTES", 16 * 1024),
        patch.object(journals, "CHECKPOINT_BYTES", 1000),
        patch.object(journals, "GROUP", 3),
    ):
        loop.run(play(Path(folder), steps))
