"""`shardSelector`: which objects a list, a watch and a deletecollection are about."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from konverge.objects.shard_hash import fnv1a
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.http.shard_cases import LOWER, NAMESPACE, ODD, REFUSED, UID, UPPER

pytestmark = pytest.mark.spec("R-81")


@pytest.fixture
async def sharded() -> AsyncIterator[Api]:
    async with ApiServer(config=Config(feature_gates=frozenset({"ShardedListAndWatch"}))) as server:
        yield Api(server)


def is_lower(uid: str) -> bool:
    return fnv1a(uid) < 1 << 63


async def test_two_halves_are_the_whole_and_say_which_they_are(sharded: Api) -> None:
    uids = {(await sharded.create(f"c{number}"))["metadata"]["uid"] for number in range(20)}
    seen: list[str] = []
    for half in (LOWER, UPPER):
        selector = half.format(field=UID)
        listed = await sharded.call("GET", CONFIG_MAPS, query={"shardSelector": selector})
        assert listed["metadata"]["shardInfo"] == {"selector": selector}
        mine = [item["metadata"]["uid"] for item in listed["items"]]
        assert all(is_lower(uid) == (half is LOWER) for uid in mine)
        seen += mine
    assert sorted(seen) == sorted(uids)
    assert "shardInfo" not in (await sharded.call("GET", CONFIG_MAPS))["metadata"]


async def test_pages_of_a_shard_are_the_shard_and_count_nothing(sharded: Api) -> None:
    for number in range(30):
        await sharded.create(f"c{number}", labels={"half": str(number % 2)})
    query = {"shardSelector": LOWER.format(field=UID), "labelSelector": "half=0", "limit": 3}
    whole = await sharded.call("GET", CONFIG_MAPS, query={**query, "limit": 0})
    page = await sharded.call("GET", CONFIG_MAPS, query=query)
    names = [item["metadata"]["name"] for item in page["items"]]
    while token := page["metadata"].get("continue"):
        assert "remainingItemCount" not in page["metadata"]
        page = await sharded.call("GET", CONFIG_MAPS, query={**query, "continue": token})
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == [item["metadata"]["name"] for item in whole["items"]]
    assert 0 < len(names) < 15


async def test_a_watch_shows_its_shard_and_bookmarks(sharded: Api) -> None:
    first = [(await sharded.create(f"c{number}"))["metadata"] for number in range(6)]
    query = {"shardSelector": LOWER.format(field=UID), "sendInitialEvents": "true"}
    query |= {"resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with sharded.watch(**query) as watch:
        expected = sorted(meta["name"] for meta in first if is_lower(meta["uid"]))
        assert await watch.take(len(expected)) == [("ADDED", name) for name in expected]
        assert (await watch.next())["type"] == "BOOKMARK"
        for meta in first:
            await sharded.patch(f"{CONFIG_MAPS}/{meta['name']}", {"data": {"a": "b"}})
        assert await watch.take(len(expected)) == [("MODIFIED", name) for name in expected]
        for meta in first:
            await sharded.call("DELETE", f"{CONFIG_MAPS}/{meta['name']}")
        assert await watch.take(len(expected)) == [("DELETED", name) for name in expected]


async def test_a_namespace_is_in_one_shard_with_all_it_has(sharded: Api) -> None:
    for space in ("shop", "bar", "kitchen", "default"):
        if space != "default":
            await sharded.create(space, "/api/v1/namespaces")
        await sharded.create("c", f"/api/v1/namespaces/{space}/configmaps")
    for half in (LOWER, UPPER):
        query = {"shardSelector": half.format(field=NAMESPACE), "fieldSelector": "metadata.name=c"}
        listed = await sharded.call("GET", "/api/v1/configmaps", query=query)
        spaces = {item["metadata"]["namespace"] for item in listed["items"]}
        expected = {s for s in ("shop", "bar", "kitchen", "default") if is_lower(s) == (half is LOWER)}
        assert spaces == expected


async def test_a_deletecollection_deletes_its_shard(sharded: Api) -> None:
    every = [(await sharded.create(f"c{number}"))["metadata"] for number in range(12)]
    await sharded.call("DELETE", CONFIG_MAPS, query={"shardSelector": LOWER.format(field=UID)})
    left = {item["metadata"]["uid"] for item in (await sharded.call("GET", CONFIG_MAPS))["items"]}
    assert left == {meta["uid"] for meta in every if not is_lower(meta["uid"])}


async def test_without_the_gate_the_selector_is_ignored(api: Api) -> None:
    await api.create("a")
    await api.create("b")
    for selector in ("nonsense(", UPPER.format(field=UID).replace("0x8", "0xf")):
        listed = await api.call("GET", CONFIG_MAPS, query={"shardSelector": selector})
        assert len(listed["items"]) == 2
        assert "shardInfo" not in listed["metadata"]


@pytest.mark.parametrize("selector", REFUSED)
async def test_what_is_not_a_shard_selector_is_refused(sharded: Api, selector: str) -> None:
    answer = await sharded.call("GET", CONFIG_MAPS, query={"shardSelector": selector}, expect=500)
    assert answer["message"].startswith("invalid shard selector: ")
    assert "reason" not in answer


@pytest.mark.parametrize("selector", ODD)
async def test_other_spellings_are_shown_in_the_usual_one(sharded: Api, selector: str) -> None:
    listed = await sharded.call("GET", "/api/v1/configmaps", query={"shardSelector": selector})
    assert listed["metadata"]["shardInfo"]["selector"].startswith(LOWER.format(field=NAMESPACE))
