"""The store: revisions, guards, history limits, waiting."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from konverge.apiserver.storage import Event, Exists, HistoryLimits, Mismatch, Missing, Store


def obj(name: str, value: str = "") -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "ns"}, "data": value}


@pytest.mark.spec("S-05")
def test_the_revision_rises_with_every_write_of_any_table() -> None:
    store = Store()
    revisions = [
        store.put(store.table("a"), obj("x"), expected=0).revision,
        store.put(store.table("b"), obj("x"), expected=0).revision,
        store.put(store.table("a"), obj("x", "2"), expected=None).revision,
        store.remove(store.table("b"), "ns/x", expected=None).revision,
    ]
    assert revisions == sorted(set(revisions))
    assert store.revision == revisions[-1]


def test_bytes_hold_the_revision_and_no_kind() -> None:
    store = Store()
    record = store.put(store.table("a"), obj("x", "v"), expected=0)
    assert record.decode() == {
        "metadata": {"name": "x", "namespace": "ns", "resourceVersion": str(record.revision)},
        "data": "v",
    }


def test_a_write_is_guarded_by_the_expected_revision() -> None:
    store = Store()
    table = store.table("a")
    first = store.put(table, obj("x"), expected=0)
    with pytest.raises(Exists):
        store.put(table, obj("x"), expected=0)
    second = store.put(table, obj("x", "2"), expected=first.revision)
    with pytest.raises(Mismatch):
        store.put(table, obj("x", "3"), expected=first.revision)
    with pytest.raises(Mismatch):
        store.remove(table, "ns/x", expected=first.revision)
    store.remove(table, "ns/x", expected=second.revision)
    with pytest.raises(Missing):
        store.put(table, obj("x"), expected=second.revision)
    with pytest.raises(Missing):
        store.remove(table, "ns/x", expected=None)
    assert store.revision == second.revision + 1  # what was refused took no revision


def test_a_deletion_shows_the_last_state_at_its_own_revision() -> None:
    store = Store()
    table = store.table("a")
    store.put(table, obj("x", "v"), expected=0)
    last = store.remove(table, "ns/x", expected=None)
    assert last.decode()["metadata"]["resourceVersion"] == str(store.revision)
    assert table.events[-1].record is None
    assert table.events[-1].shown is last


@pytest.mark.parametrize(
    "limits",
    [HistoryLimits(events=3), HistoryLimits(superseded_bytes=300)],
    ids=["by number", "by size"],
)
def test_the_history_is_bounded(limits: HistoryLimits) -> None:
    store = Store(history=limits)
    table = store.table("a")
    for number in range(50):
        store.put(table, obj("x", str(number)), expected=None)
    assert len(table.events) <= 4
    assert store.compacted == table.events[0].revision - 1


@pytest.mark.spec("S-14")
def test_old_events_are_dropped_a_few_at_a_time() -> None:
    store = Store(history=HistoryLimits(superseded_bytes=100_000))
    table = store.table("/configmaps")
    for number in range(1000):
        store.put(table, obj(f"c{number}", "y" * 500), expected=None)
    store.put(table, obj("big", "y" * 200_000), expected=None)
    kept: list[int] = []
    for _ in range(20):  # the old state of the big one is too much, and stands behind a thousand others
        store.put(table, obj("big", "y" * 500), expected=None)
        kept.append(len(table.events))
    assert all(before - after <= 64 for before, after in pairwise(kept))
    assert kept[-1] < 30


def test_compaction_on_demand_drops_old_revisions() -> None:
    store = Store()
    table = store.table("a")
    for number in range(5):
        store.put(table, obj("x", str(number)), expected=None)
    store.compact(store.revision - 2)
    assert [event.revision for event in table.events] == [store.revision - 1, store.revision]
    assert store.compacted == store.revision - 2
    store.compact(store.revision + 100)
    assert store.compacted == store.revision


async def test_a_caller_can_wait_for_a_revision() -> None:
    store = Store()
    waiting = asyncio.create_task(store.reached(store.revision + 2))
    await asyncio.sleep(0)
    store.put(store.table("a"), obj("x"), expected=0)
    await asyncio.sleep(0)
    assert not waiting.done()
    store.put(store.table("a"), obj("y"), expected=0)
    await waiting


def test_subscribers_are_notified_before_the_write_returns() -> None:
    store = Store()
    seen: list[Event] = []
    store.subscribe("a", seen.append)
    record = store.put(store.table("a"), obj("x"), expected=0)
    assert [event.record for event in seen] == [record]
