"""The order of handing out: priority, ageing, tenants, each with its bound."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.workqueue import PATIENCE, FairQueue

Key = tuple[str, int]
keys = st.tuples(st.sampled_from("abc"), st.integers(0, 5))
priorities = st.sampled_from([0, -100, 10])


def by_namespace() -> FairQueue[Key]:
    return FairQueue(tenant=lambda key: key[0])


def drain(queue: FairQueue[Key]) -> list[Key]:
    return [queue.pop()[0] for _ in range(len(queue))]


@pytest.mark.spec("R-13", "R-16")
@given(st.lists(st.tuples(keys, priorities)))
def test_every_key_comes_out_once_with_its_highest_priority(pushes: list[tuple[Key, int]]) -> None:
    queue = by_namespace()
    highest: dict[Key, int] = {}
    for key, priority in pushes:
        assert queue.push(key, priority) == (key not in highest)
        highest[key] = max(priority, highest.get(key, priority))
        assert key in queue
    handed_out = [queue.pop() for _ in range(len(queue))]
    assert dict(handed_out) == highest
    assert len(handed_out) == len(highest)
    assert not any(key in queue for key in highest)


@pytest.mark.spec("R-16")
@given(st.lists(keys, unique=True))
def test_keys_of_a_tenant_go_in_order_of_arrival(arrivals: list[Key]) -> None:
    queue = by_namespace()
    for key in arrivals:
        queue.push(key)
    for key in arrivals[::2]:
        queue.push(key)  # again: it keeps its place
    out = drain(queue)
    for tenant in "abc":
        assert [key for key in out if key[0] == tenant] == [key for key in arrivals if key[0] == tenant]


@pytest.mark.spec("R-16")
@given(st.lists(keys, unique=True, min_size=1))
def test_tenants_take_turns(arrivals: list[Key]) -> None:
    """While a tenant has waiting keys, no other gets two turns between two of its own."""
    queue = by_namespace()
    for key in arrivals:
        queue.push(key)
    left = Counter(key[0] for key in arrivals)
    since: Counter[str] = Counter()
    while len(queue):
        tenant = queue.pop()[0][0]
        left[tenant] -= 1
        for other in "abc":
            if left[other] and other != tenant:
                since[other, tenant] += 1
                assert since[other, tenant] <= 1
            since[tenant, other] = 0


@pytest.mark.spec("R-16")
def test_a_steady_stream_of_fresh_changes_does_not_starve_the_rest() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.push(-1, -100)
    taken = 0
    for fresh in range(100):
        queue.push(fresh)
        queue.push(fresh + 1000)
        key, _ = queue.pop()
        taken += 1
        if key == -1:
            break
    assert taken == PATIENCE + 1


@pytest.mark.spec("R-16")
def test_fresh_changes_go_before_the_initial_list() -> None:
    queue: FairQueue[str] = FairQueue()
    for name in ("old-1", "old-2"):
        queue.push(name, -100)
    queue.push("fresh")
    assert [queue.pop()[0] for _ in range(3)] == ["fresh", "old-1", "old-2"]


@pytest.mark.spec("R-16")
def test_the_lowest_priority_gets_each_ninth_turn() -> None:
    queue: FairQueue[int] = FairQueue()
    for key in range(100):
        queue.push(key)
        queue.push(key + 1000, -5)
        queue.push(key + 2000, -100)
    turns = [queue.pop()[1] for _ in range(4 * (PATIENCE + 1))]
    assert turns == ([0] * PATIENCE + [-100]) * 4


@pytest.mark.spec("R-16")
def test_only_keys_that_pass_a_waiting_one_count_against_its_patience() -> None:
    queue: FairQueue[int] = FairQueue()
    for key in range(PATIENCE):
        queue.push(key)
        queue.push(-1 - key, -100)
        queue.pop()
    for _ in range(PATIENCE):
        queue.pop()  # the lower ones alone: none of them waits for another priority
    for key in range(2 * PATIENCE):
        queue.push(key)
    queue.push(-1, -100)
    assert [queue.pop()[1] for _ in range(PATIENCE + 1)] == [0] * PATIENCE + [-100]


@pytest.mark.spec("R-16")
@given(st.lists(st.tuples(keys, priorities)), st.lists(st.tuples(keys, priorities)))
def test_a_key_that_rises_leaves_its_tenant_its_place(
    first: list[tuple[Key, int]], second: list[tuple[Key, int]]
) -> None:
    """Whatever rises between two turns: without ageing, priorities go in order and every key once."""
    queue = by_namespace()
    for key, priority in first:
        queue.push(key, priority)
    popped = [queue.pop() for _ in range(min(len(queue), 3))]
    for key, priority in second:
        queue.push(key, priority)
    waiting = len(queue)
    rest = [queue.pop() for _ in range(waiting)]
    assert len(queue) == 0
    assert len({key for key, _ in rest}) == waiting
    early = [priority for _, priority in rest[: PATIENCE - len(popped)]]
    assert early == sorted(early, reverse=True)
    queue.push(("a", 0), 10)
    assert queue.pop() == (("a", 0), 10)
