"""Which member owns what: minimal movement, even shares, the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.cache.record import Key
from konverge.objects.shard_hash import fnv1a
from konverge.runtime.sharding.rendezvous import (
    NAMESPACE_SLOTS,
    SLOTS,
    owners,
    shard_selector,
    slot_of_key,
    slot_of_namespace,
)

pytestmark = pytest.mark.spec("R-80")

names = st.lists(st.text("abcdefghij-0123456789", min_size=1, max_size=12), min_size=1, max_size=6, unique=True)


class Tenant(msgspec.Struct, frozen=True):
    """A key of an author's own type."""

    cluster: str
    name: str


@given(names, st.randoms(use_true_random=False))
def test_a_member_that_goes_moves_only_its_own_slots(members: list[str], rng: object) -> None:
    before = owners(members, 64)
    gone = members[0]
    after = owners(members[1:], 64)
    moved = [slot for slot in range(64) if before[slot] != after[slot]]
    assert moved == [slot for slot in range(64) if before[slot] == gone]


@given(names)
def test_the_order_of_the_members_does_not_matter(members: list[str]) -> None:
    assert owners(members, 64) == owners(list(reversed(members)), 64)
    assert set(owners(members, 64)) <= set(members)


def test_without_members_a_slot_has_no_owner() -> None:
    assert owners([], 4) == ("", "", "", "")


@pytest.mark.parametrize("count", [2, 4, 10])
def test_shares_are_about_even(count: int) -> None:
    sizes = Counter(owners([f"op-{number}" for number in range(count)], SLOTS))
    assert len(sizes) == count
    assert all(0.7 < size * count / SLOTS < 1.3 for size in sizes.values())
    keys = Counter(slot_of_key(Key("shop", f"web-{number}")) for number in range(20 * SLOTS))
    assert len(keys) == SLOTS
    assert max(keys.values()) < 60


def test_keys_of_any_type_have_the_same_slot_in_every_process() -> None:
    program = (
        "from konverge.cache.record import Key\n"
        "from konverge.runtime.sharding.rendezvous import owners, slot_of_key\n"
        "print(slot_of_key(Key('shop', 'web')), owners(['a', 'b'], 1024).count('a'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(slot_of_key(Key("shop", "web"))), str(owners(["a", "b"], 1024).count("a"))]
    assert slot_of_key(Tenant("eu", "web")) != slot_of_key(Tenant("us", "web"))
    assert slot_of_key(Tenant("eu", "web")) == slot_of_key(Tenant("eu", "web"))


def test_keys_with_sets_have_the_same_slot_in_every_process() -> None:
    """The order of a set in memory hangs on the seed of the process."""
    program = (
        "from konverge.runtime.sharding.rendezvous import slot_of_key\n"
        "print(slot_of_key(('web', frozenset({'eu', 'us', 'asia', 'africa'}))))"
    )
    slots = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        slots.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(slots) == 1


@given(st.sets(st.integers(0, NAMESPACE_SLOTS - 1), min_size=1), st.text("abcdefgh-0123456789", min_size=1))
def test_the_selector_of_a_share_selects_its_namespaces(share: set[int], namespace: str) -> None:
    hashed = fnv1a(namespace)
    ranges = [part.split("'")[1::2] for part in shard_selector(frozenset(share)).split(" || ")]
    selected = any(int(start, 16) <= hashed < int(end, 16) for start, end in ranges)
    assert selected == (slot_of_namespace(Key(namespace, "x")) in share)
