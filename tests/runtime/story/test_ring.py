"""What is remembered is bounded, by count and by bytes, for a controller and for each key."""

from __future__ import annotations

import random

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.client.call import Call
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.reasons import Changed, Resync
from konverge.runtime.story.entry import MAX_BYTES, MAX_CALLS, MAX_EVENTS, MAX_READS, Entry
from konverge.runtime.story.ring import Ring, StoryLimits

pytestmark = pytest.mark.virtual


def record(size: int) -> Record:
    return Record(b"x" * size, 1, "u", 1)


def entry(name: str, number: int = 0, size: int = 0) -> Entry:
    key = Key("ns", name)
    reason = Changed("ConfigMap", Change(ChangeType.UPDATED, key, record(size // 2), record(size - size // 2)))
    made = Entry(key, (reason,) if size else (Resync(),), 0.0, float(number), number)
    made.seconds = 0.0
    return made


def names(ring: Ring) -> list[str]:
    return sorted({kept.key.name for kept in ring})


@pytest.mark.spec("R-87")
async def test_a_busy_key_pushes_no_other_out() -> None:
    ring = Ring(StoryLimits(reconciles=20, per_key=5))
    for name in "abcd":
        ring.keep(entry(name))
    for number in range(1000):
        ring.keep(entry("busy", number))
    assert names(ring) == ["a", "b", "busy", "c", "d"]
    assert [kept.number for kept in ring.of(Key("ns", "busy"))] == [995, 996, 997, 998, 999]
    assert ring.count == len(list(ring)) == 9


async def test_many_busy_keys_leave_every_key_its_latest() -> None:
    ring = Ring(StoryLimits(reconciles=20, per_key=16))
    ring.keep(entry("quiet"))
    for number in range(200):
        for name in ("a", "b", "c"):
            ring.keep(entry(name, number))
    assert names(ring) == ["a", "b", "c", "quiet"]
    assert ring.count == 20


async def test_of_too_many_keys_the_one_reconciled_longest_ago_goes() -> None:
    ring = Ring(StoryLimits(reconciles=3))
    for name in ("a", "b", "c", "a", "d"):
        ring.keep(entry(name))
    assert names(ring) == ["a", "c", "d"]


async def test_bytes_are_bounded_and_large_objects_cost_no_other_its_place() -> None:
    limits = StoryLimits(reconciles=1000, bytes=100_000)
    ring = Ring(limits)
    ring.keep(entry("quiet", size=1000))
    for number in range(50):
        ring.keep(entry("large", number, size=12_000))
    assert names(ring) == ["large", "quiet"]
    assert sum(kept.size for kept in ring.of(Key("ns", "large"))) * 8 <= limits.bytes
    assert ring.size == sum(kept.size for kept in ring) <= limits.bytes


async def test_what_is_too_large_alone_is_kept_without_its_objects() -> None:
    ring = Ring(StoryLimits(bytes=100_000))
    huge = entry("huge", size=5_000_000)
    ring.keep(huge)
    assert ring.count == 1
    assert ring.size < 1000
    assert str(huge.reasons[0]) == "ConfigMap ns/huge updated (its fields were too large to keep)"


async def test_nothing_is_kept_when_none_is_wanted() -> None:
    ring = Ring(StoryLimits(reconciles=0))
    ring.keep(entry("a"))
    assert (ring.count, ring.size, list(ring)) == (0, 0, [])


@pytest.mark.parametrize("seed", range(20))
async def test_the_bounds_hold_whatever_comes(seed: int) -> None:
    rng = random.Random(seed)
    limits = StoryLimits(reconciles=rng.randint(1, 30), per_key=rng.randint(1, 8), bytes=rng.choice((5_000, 50_000)))
    ring = Ring(limits)
    for number in range(300):
        made = entry(f"k{rng.randint(0, 12)}", number, size=rng.choice((0, 100, 3_000, 200_000)))
        ring.keep(made)
        kept = list(ring)
        assert made in kept  # the latest is always there
        assert ring.count == len(kept) <= limits.reconciles
        assert ring.size == sum(one.size for one in kept)
        assert ring.size <= limits.bytes or ring.count == 1
        assert all(len(ring.of(key)) <= limits.per_key for key in {one.key for one in kept})
        assert len(ring._older) <= 2 * limits.reconciles + 1


async def test_one_reconcile_has_bounds_of_its_own() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    for number in range(1000):
        made.read(ConfigMap, "ns", f"c{number}")
        made.called(Call("get", ConfigMap.resource, "ns", "a"), None)
        made.event("Normal", "Reason", "message", ConfigMap())
    assert (len(made.reads), len(made.calls), len(made.events)) == (MAX_READS, MAX_CALLS, MAX_EVENTS)
    assert made.left_out == 3000 - MAX_READS - MAX_CALLS - MAX_EVENTS


async def test_the_content_of_a_large_write_is_let_go_when_it_ends() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    note = made.called(Call("patch", ConfigMap.resource, "ns", "a", body=b"x" * MAX_BYTES), record(10))
    assert note is not None
    note.answered(200, b"", "5")
    assert (note.size, note.large, note.version) == (0, True, "5")


async def test_requests_of_a_task_that_a_reconcile_left_are_not_its_story() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    made.seconds = 0.5
    assert made.called(Call("get", ConfigMap.resource, "ns", "a"), None) is None
    assert made.calls == []
