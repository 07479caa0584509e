"""What is remembered is bounded, by count and by bytes, for a controller and for each key."""

from __future__ import annotations

import asyncio
import random

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.client import Conflict
from konverge.client.call import Call
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta, Status
from konverge.runtime.reasons import Changed, Resync
from konverge.runtime.story.entry import MAX_BYTES, MAX_CALLS, MAX_EVENTS, MAX_READS, MAX_TEXT, Entry
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


async def test_of_a_key_over_its_share_of_the_bytes_no_more_goes_than_has_to() -> None:
    ring = Ring(StoryLimits(bytes=8 * 10_000))
    for number, size in enumerate((2_600, 2_600, 3_600)):
        ring.keep(entry("a", number, size=size))
    key = Key("ns", "a")
    assert [kept.size for kept in ring.of(key)] == [3_000, 3_000, 4_000], "just its share"
    ring.keep(entry("a", 3, size=1))
    assert [kept.number for kept in ring.of(key)] == [1, 2, 3]
    assert (ring.size, ring.count) == (7_401, 3)
    ring.keep(entry("a", 4, size=9_600))
    assert [kept.number for kept in ring.of(key)] == [4]
    assert (ring.size, ring.count) == (10_000, 1), "the latest, with all that it has"
    ring.keep(entry("a", 5, size=9_601))
    assert [(kept.number, kept.size) for kept in ring.of(key)] == [(5, 400)]


async def test_bytes_are_bounded_exactly_across_keys() -> None:
    ring = Ring(StoryLimits(bytes=8 * 1_000))
    for number in range(8):
        ring.keep(entry(f"k{number}", number, size=600))
    assert (ring.size, ring.count) == (8_000, 8)
    ring.keep(entry("more", 8, size=1))
    assert names(ring) == [*(f"k{number}" for number in range(1, 8)), "more"]


@pytest.mark.parametrize("limits", [StoryLimits(bytes=100), StoryLimits(reconciles=1)], ids=["bytes", "count"])
async def test_the_latest_is_kept_whatever_the_bound(limits: StoryLimits) -> None:
    ring = Ring(limits)
    for number, name in enumerate("abb"):
        ring.keep(entry(name, number, size=50))
        assert [kept.number for kept in ring] == [number]
        assert ring.count == 1


async def test_keys_and_their_reconciles_have_an_order() -> None:
    ring = Ring()
    for number, name in enumerate("abab"):
        ring.keep(entry(name, number))
    assert [(kept.key.name, kept.number) for kept in ring] == [("a", 0), ("a", 2), ("b", 1), ("b", 3)]
    assert ring.of(Key("ns", "c")) == []
    ring.of(Key("ns", "a")).clear()
    assert len(ring.of(Key("ns", "a"))) == 2, "what is given away is a copy"


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


@pytest.mark.parametrize(
    ("body", "before", "after", "kept"),
    [
        (MAX_BYTES, 0, 0, True),
        (MAX_BYTES + 1, 0, 0, False),
        (MAX_BYTES - 10, 10, 0, True),
        (MAX_BYTES - 10, 11, 0, False),
        (MAX_BYTES, 10, MAX_BYTES - 10, True),
        (0, 10, MAX_BYTES - 9, False),
    ],
)
async def test_the_content_of_a_write_is_kept_up_to_a_bound(body: int, before: int, after: int, kept: bool) -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    known = record(before) if before else None
    note = made.called(Call("patch", ConfigMap.resource, "ns", "a", body=b"x" * body), known)
    assert note is not None
    note.answered(201, b"x" * after, "5")
    assert (note.large, note.status) == (not kept, 201)
    if kept:
        assert (len(note.body), len(note.after), note.before) == (0 if after else body, after, known)
    else:
        assert (note.body, note.after, note.before, note.size) == (b"", b"", None, 0)


async def test_an_answer_about_an_object_that_was_not_known_is_not_kept() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    note = made.called(Call("create", ConfigMap.resource, "ns", "a", body=b"asked"), None)
    assert note is not None
    await asyncio.sleep(2)
    note.answered(201, b"answer", "5")
    assert (note.body, note.after, note.size, note.seconds) == (b"asked", b"", 5, pytest.approx(2))


async def test_a_failed_request_has_its_status_and_the_begin_of_its_message() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    errors = [ValueError("x" * (MAX_TEXT + 1)), ValueError(), Conflict(Status(message="no"))]
    notes = [made.called(Call("get", ConfigMap.resource, "ns", "a"), None) for _ in errors]
    for note, error in zip(notes, errors, strict=True):
        assert note is not None
        assert note.seconds == -1.0
        note.failed(error)
        assert note.seconds == 0.0
    assert [(note.status, note.error) for note in made.calls] == [
        (0, "x" * MAX_TEXT),
        (0, "ValueError"),
        (409, str(errors[2])),
    ]


async def test_the_size_of_a_reconcile_is_that_of_what_it_keeps() -> None:
    made = entry("a", size=7)
    assert made.measure() == made.size == 407
    for number in range(3):
        made.read(ConfigMap, "ns", f"c{number}")
    made.seconds = -1.0
    made.called(Call("patch", ConfigMap.resource, "ns", "a", body=b"12345"), record(10))
    assert made.measure() == 407 + 3 * 120 + 120 + 15
    made.shorten()
    assert made.size == 400 + 4 * 120
    assert made.calls[0].large
    key = Key("ns", "a")
    added = Changed("ConfigMap", Change(ChangeType.ADDED, key, None, record(3), initial=True))
    deleted = Changed("ConfigMap", Change(ChangeType.DELETED, key, record(4), None))
    made = Entry(key, (added, deleted, Resync()), 0.0, 0.0)
    made.called(Call("get", ConfigMap.resource, "ns", "a"), None)
    assert made.measure() == 400 + 3 + 4 + 120
    made.shorten()
    assert [str(reason) for reason in made.reasons] == [
        "ConfigMap ns/a listed (its fields were too large to keep)",
        "ConfigMap ns/a deleted (its fields were too large to keep)",
        "resync",
    ]
    assert not made.calls[0].large, "it had no content"
    made.called(Call("get", ConfigMap.resource, "ns", "a", body=b"1"), None)
    made.shorten()
    assert [note.large for note in made.calls] == [False, True]


async def test_errors_and_events_are_kept_in_part() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    made.failed(KeyError("x"), "y" * (MAX_TEXT + 1), "app.py:3")
    assert (made.error, made.error_type, made.place) == ("y" * MAX_TEXT, "KeyError", "app.py:3")
    made.event("Normal", "Done", "z" * (MAX_TEXT + 1), ConfigMap(kind="Other", metadata=ObjectMeta(name="b")))
    made.event("Normal", "Done", "all", ConfigMap(kind="", metadata=ObjectMeta(name="c")))
    assert made.events == (
        ("Normal", "Done", "z" * MAX_TEXT, "Other", "b"),
        ("Normal", "Done", "all", "ConfigMap", "c"),
    )


async def test_requests_of_a_task_that_a_reconcile_left_are_not_its_story() -> None:
    made = Entry(Key("ns", "a"), (), 0.0, 0.0)
    made.seconds = 0.5
    assert made.called(Call("get", ConfigMap.resource, "ns", "a"), None) is None
    assert made.calls == ()
