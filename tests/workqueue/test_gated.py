"""A queue behind a gate: a standby's, or one of several replicas'."""

from __future__ import annotations

import asyncio

import pytest

from konverge.workqueue import GatedQueue
from konverge.workqueue.gated import REMEMBERED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-77")]


def queue() -> GatedQueue[int]:
    return GatedQueue(remember=30.0)


async def test_nothing_is_taken_before_the_gate_is_opened() -> None:
    keys = queue()
    keys.add(1, reason="big")
    keys.add_after(2, 5)
    await asyncio.sleep(10)
    assert keys.pending() == []
    keys.set_gate(lambda key: True)
    assert sorted(keys.refused()) == [1, 2]
    assert list(keys.refused()) == []
    keys.add(1)
    assert (await keys.get()).reasons == ()


async def test_a_narrower_gate_drops_what_waits_and_leaves_what_is_in_work() -> None:
    keys = queue()
    ended: list[int] = []
    keys.on_done = ended.append
    keys.set_gate(lambda key: True)
    for key in (1, 2, 3, 4):
        keys.add(key)
    assert [(await keys.get()).key, (await keys.get()).key] == [1, 2]
    keys.add(1)  # they come again when they are done
    keys.add(2)
    keys.add_after(5, 3)
    keys.add_after(6, 3)
    keys.set_gate(lambda key: key % 2 == 0)
    assert keys.in_work() == [1, 2]
    keys.done(1)
    keys.done(2)
    assert ended == [1, 2]
    await asyncio.sleep(10)
    assert sorted(item.key for item in keys.pending()) == [2, 4, 6]
    keys.set_gate(lambda key: True)
    assert sorted(keys.refused()) == [1, 3, 5]


async def test_a_key_that_its_worker_adds_again_after_the_gate_closed_does_not_come_back() -> None:
    keys = queue()
    keys.set_gate(lambda key: True)
    keys.add(1)
    await keys.get()
    keys.set_gate(lambda key: False)
    keys.add_after(1, 1)
    keys.add_rate_limited(1)
    keys.done(1)
    await asyncio.sleep(100)
    assert keys.pending() == []


async def test_refused_keys_are_remembered_for_a_while_and_up_to_a_bound() -> None:
    keys = queue()
    for key in range(REMEMBERED + 500):
        keys.add(key)
    keys.set_gate(lambda key: key < 600)
    assert sorted(keys.refused()) == list(range(500, 600))
    await asyncio.sleep(60)
    for key in range(20_000, 30_000):
        keys.add(key)
    keys.set_gate(lambda key: key < 20_000)
    assert list(keys.refused()) == [], "those of a minute ago are forgotten as others come"


async def test_a_few_refused_keys_are_forgotten_too_as_others_come() -> None:
    keys = queue()
    keys.add(1)
    await asyncio.sleep(29)
    keys.add(2)
    await asyncio.sleep(2)
    keys.add(3)
    keys.set_gate(lambda key: True)
    assert sorted(keys.refused()) == [2, 3]
