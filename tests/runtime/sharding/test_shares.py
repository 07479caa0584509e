"""When the gates of a replica open for what came to its share, and which kinds a server selects for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.cache.informer import Informer
from konverge.cache.record import Key
from konverge.cache.spec import CacheSpec
from konverge.client import Client, ConnectionLost
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.resource import Resource
from konverge.observe.health import Health
from konverge.observe.metrics import Numbers
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.sharding import Sharding
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.membership import Passed, Seen, Written
from konverge.runtime.sharding.rendezvous import shard_selector
from konverge.runtime.sharding.selecting import NOTHING, SelectedShare, selectable
from konverge.runtime.sharding.shares import PATIENCE, Shares

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-80")]

ME, OTHER = Member("op-me", "1"), Member("op-other", "1")
EVERYTHING = frozenset(range(1024))


class Cache:
    """An informer as far as a share looks at one: it shows what the server has when the test says so."""

    def __init__(self, *namespaces: str, served: bool = True) -> None:
        self.spec = CacheSpec(resource=Secret.resource, namespaces=namespaces)
        self.served = served
        self.present = asyncio.Event()
        self.error: Exception | None = None
        self.asked: list[tuple[str, float]] = []
        self.restarted: list[str] = []

    def mark(self, namespace: str) -> int:
        return len(self.asked)

    async def wait_for_present(self, namespace: str, mark: int) -> None:
        assert mark == len(self.asked)
        self.asked.append((namespace, clock.elapsed()))
        if self.error is not None:
            raise self.error
        await self.present.wait()

    def restart_watch(self, namespace: str) -> None:
        self.restarted.append(namespace)


@asynccontextmanager
async def following(client: Client, *caches: Cache) -> AsyncIterator[Shares]:
    """A replica that has joined, and whose watch the test is."""
    shares = Shares(client, Sharding(name="op"), {})
    shares.replica.step(Written(ME, clock.elapsed()))
    task = asyncio.create_task(shares._follow(cast("Any", list(caches))))
    try:
        yield shares
    finally:
        task.cancel()


def see(shares: Shares, epoch: int, *members: Member) -> None:
    shares.replica.step(Written(ME, clock.elapsed()))
    shares.replica.step(Seen(Assignment(epoch, members)))


async def test_a_share_opens_when_every_cache_shows_what_the_server_has(client: Client) -> None:
    first, second, missing = Cache("a", "b"), Cache(), Cache(served=False)
    async with following(client, first, second, missing) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(1)
        assert (shares._open, [space for space, _ in first.asked]) == (frozenset(), ["a"])
        assert not shares.admits(Key("a", "x"))
        first.present.set()
        await asyncio.sleep(1)
        assert ([space for space, _ in first.asked], [space for space, _ in second.asked]) == (["a", "b"], [""])
        assert shares._open == frozenset()
        second.present.set()
        await asyncio.sleep(1)
        assert shares._open == EVERYTHING
        assert shares.admits(Key("a", "x"))
        assert missing.asked == [], "its kind is not installed"


async def test_a_slot_that_went_and_came_back_meanwhile_is_compared_again(client: Client) -> None:
    cache = Cache()
    async with following(client, cache) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(1)
        see(shares, 2, OTHER)
        see(shares, 3, ME)
        cache.present.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert (len(cache.asked), shares._open) == (2, EVERYTHING)


async def test_what_leaves_the_share_is_closed_at_once(client: Client) -> None:
    cache = Cache()
    cache.present.set()
    async with following(client, cache) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(1)
        see(shares, 2, ME, OTHER)
        kept = shares.replica.membership.share
        assert shares._open == kept
        assert 0 < len(kept) < 1024
        await asyncio.sleep(1)
        assert len(cache.asked) == 1, "nothing came"


async def test_after_a_pause_of_the_lease_only_what_was_open_goes_on_at_once(client: Client) -> None:
    cache = Cache()
    cache.present.set()
    async with following(client, cache) as shares:
        see(shares, 1, ME, OTHER)
        await asyncio.sleep(1)
        half = shares._open
        assert 0 < len(half) < 1024
        cache.present.clear()
        see(shares, 2, ME)
        await asyncio.sleep(10)
        shares.replica.step(Passed())
        assert (shares._open, shares.replica.membership.share) == (frozenset(), frozenset())
        see(shares, 2, ME)
        assert (shares._open, shares.replica.membership.share) == (half, EVERYTHING)


@pytest.mark.parametrize("moved", ["epoch", "life"])
async def test_after_a_pause_of_the_lease_what_may_have_moved_is_compared(client: Client, moved: str) -> None:
    cache = Cache()
    cache.present.set()
    async with following(client, cache) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(10)
        shares.replica.step(Passed())
        cache.present.clear()
        me = ME if moved == "epoch" else Member(ME.name, "2")
        shares.replica.step(Seen(Assignment(2, (me,))))
        shares.replica.step(Written(me, clock.elapsed()))
        assert (shares._open, shares.replica.membership.share) == (frozenset(), EVERYTHING)


async def test_caches_that_cannot_be_compared_are_compared_again_every_second(client: Client) -> None:
    cache = Cache()
    cache.error = ConnectionLost("away")
    async with following(client, cache) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(4.5)
        begun = cache.asked[0][1]
        assert [round(at - begun, 3) for _, at in cache.asked] == [0, 1, 2, 3, 4]
        assert (shares._open, cache.restarted) == (frozenset(), [])
        cache.error = None
        cache.present.set()
        await asyncio.sleep(1)
        assert shares._open == EVERYTHING


async def test_a_cache_that_shows_nothing_for_a_minute_is_asked_on_another_connection(client: Client) -> None:
    cache = Cache("a")
    async with following(client, cache) as shares:
        see(shares, 1, ME)
        await asyncio.sleep(PATIENCE - 0.1)
        assert cache.restarted == []
        await asyncio.sleep(0.2)
        assert cache.restarted == ["a"]
        see(shares, 1, ME)
        await asyncio.sleep(PATIENCE)
        assert (len(cache.asked), shares._open) == (2, frozenset())


async def test_the_group_is_known_to_metrics_and_probes(client: Client) -> None:
    shares, numbers, health = Shares(client, Sharding(name="op"), {}), Numbers(), Health()
    shares.report(numbers, health)
    assert numbers.leaders["op"]() is False
    assert health.ready["sharding"]() == "no valid Lease in the group default/op"
    assert health.remarks["sharding"]() == ""
    shares.replica.step(Written(ME, clock.elapsed()))
    shares.replica.step(Seen(Assignment(7, (ME,))))
    assert health.ready["sharding"]() == ""
    (more,) = numbers.more
    samples = [sample for family in more() for sample in family.samples]
    assert {sample.name: (sample.labels, sample.value) for sample in samples} == {
        "sharding_members": ({"group": "op"}, 0),
        "sharding_keys_owned": ({"group": "op"}, 0),
        "sharding_slots_owned": ({"group": "op"}, 1024),
        "sharding_epoch": ({"group": "op"}, 7),
        "sharding_handovers_total": ({"group": "op"}, 0),
    }


async def test_where_the_server_does_not_select_nothing_is_asked_for(client: Client) -> None:
    selected = SelectedShare()
    for works in (None, False):
        selected.works = works
        await selected.cover(frozenset({1}), [])
        assert (selected.selector, selected.share) == (NOTHING, frozenset())
    selected.works = True
    await selected.cover(frozenset({1}), [])
    assert (selected.selector, selected.share) == (shard_selector(frozenset({1})), {1})
    await selected.cover(frozenset(), [])
    assert (selected.selector, selected.share) == (NOTHING, frozenset())


def declared(client: Client, primary: CacheSpec, owned: CacheSpec, watched: CacheSpec) -> DeclaredCaches:
    caches = DeclaredCaches(None)
    caches.primary, own, other = (Informer(client.caller, spec) for spec in (primary, owned, watched))
    caches.owned, caches.watched = [own], [other]
    for informer in (caches.primary, own, other):
        caches.add(informer, {})
    return caches


def test_kinds_are_selected_whose_objects_are_needed_near_our_keys_alone(server: ApiServer, client: Client) -> None:
    def spec(resource: Resource, *namespaces: str) -> CacheSpec:
        return CacheSpec(resource=resource, namespaces=namespaces)

    maps, secrets, spaces = ConfigMap.resource, Secret.resource, Namespace.resource
    one = declared(client, spec(maps), spec(secrets), spec(spaces))
    assert selectable([one]) == {maps, secrets}
    assert selectable([one, declared(client, spec(maps), spec(maps), spec(secrets))]) == {maps}, "one watches it"
    assert selectable([declared(client, spec(spaces), spec(secrets), spec(spaces))]) == {secrets}
    assert selectable([declared(client, spec(maps, "a"), spec(secrets), spec(spaces))]) == {secrets}
    assert selectable([one, declared(client, spec(maps, "a"), spec(secrets), spec(spaces))]) == {secrets}
