"""Caches that are being filled do not answer: what they do not have yet would look as if it did not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import NotFound
from konverge.client.call import Call
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Owns, Request, TransientError, Watches
from konverge.runtime.clusters import FixedClusters
from konverge.runtime.clusters import fleet as loaded
from konverge.runtime.clusters.access import ClusterAccess
from konverge.wire.message import Stream
from tests.runtime.clusters.places import Place, places
from tests.runtime.clusters.test_fleet import SELECTED, manager
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-83", "R-11")]

assert loaded  # before a loop runs


def slow_to_list(place: Place) -> asyncio.Event:
    """Its caches are not filled before the event is set; everything else works."""
    may_list, stream = asyncio.Event(), place.cut.stream

    async def waiting(call: Call) -> Stream:
        await may_list.wait()
        return await stream(call)

    place.cut.stream = waiting  # type: ignore[method-assign]
    return may_list


def child() -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="child", namespace=SPACE, labels={"site": "x"}), data={"k": "v"})


async def ask(question: Callable[[ClusterAccess], Awaitable[Any]], **watched: Any) -> tuple[list[Any], list[Any]]:
    """What reconciles at home see of another cluster, before its cache is filled and after; and there is its child."""
    answers: list[Any] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        if ctx.request.name == "x" and "a" in ctx.clusters:
            try:
                answers.append(await question(ctx.clusters["a"]))
            except TransientError as error:
                answers.append(error)
                raise

    watch = Watches(ConfigMap, requests=lambda _: [Request(SPACE, "x")], clusters="others", **watched)
    declared = Controller(Secret, reconcile, watches=[watch], **SELECTED)
    async with places("home", "a") as [home, a]:
        await home.create("x")
        await a.client.create(child())
        may_list = slow_to_list(a)
        async with manager(home.client, FixedClusters({"a": a.connect()}), declared).running() as running:
            await settle()
            assert running.fleet is not None
            assert running.fleet.members["a"].caches.unsynced
            before = list(answers)
            may_list.set()
            await settle(60)
            assert running.fleet.members["a"].caches.unsynced == []
        return before, answers[len(before) :]


async def get(cluster: ClusterAccess) -> Any:
    found = await cluster.get(ConfigMap, "child", SPACE)
    return None if found is None else found.data


async def names(cluster: ClusterAccess) -> Any:
    return [each.metadata.name for each in await cluster.list(ConfigMap, SPACE, labels.parse("site=x"))]


@pytest.mark.parametrize("watched", [{}, {"label_selector": "site=x"}, {"namespaces": (SPACE,)}])
async def test_reads_are_live_until_the_cache_is_filled(watched: Any) -> None:
    for question, answer in ((get, {"k": "v"}), (names, ["child"])):
        before, after = await ask(question, **watched)
        assert before
        assert set(map(str, (*before, *after))) == {str(answer)}


async def test_a_cleanup_deletes_what_the_cache_does_not_show_yet() -> None:
    async def delete(cluster: ClusterAccess) -> Any:
        deleted = await cluster.delete(ConfigMap, "child", SPACE)
        with pytest.raises(NotFound):
            await cluster.client.get(ConfigMap, "child", SPACE)
        return deleted

    before, after = await ask(delete)
    assert before[0] is True
    assert not any((*before[1:], *after))


def upper(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "data": {key.upper(): value for key, value in obj.get("data", {}).items()}}


@pytest.mark.parametrize("watched", [{}, {"label_selector": "site=x"}])
async def test_what_a_transform_makes_is_waited_for(watched: Any) -> None:
    """An object as it is on the server is not what the author reads."""
    for question, answer in ((get, {"K": "v"}), (names, ["child"])):
        before, after = await ask(question, transform=upper, **watched)
        assert before
        assert all("is not filled yet" in str(error) for error in before)
        assert after[-1] == answer


async def test_indexes_are_waited_for() -> None:
    answers: list[Any] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        if ctx.request.name != "x":
            return
        for read in (lambda: ctx.indexed(ConfigMap, "site", "x"), lambda: ctx.owned(ConfigMap)):
            try:
                result: Any = read()
                answers.append(len(await result if asyncio.iscoroutine(result) else result))
            except TransientError as error:
                answers.append(error)

    async with places("home") as [home]:
        await home.create("x")
        await home.client.create(child())
        site = {ConfigMap: {"site": lambda obj: [obj.metadata.labels.get("site", "")]}}
        declared = Controller(Secret, reconcile, owns=[Owns(ConfigMap)], indexes=site, **SELECTED)
        async with manager(home.client, FixedClusters({}), declared).running() as running:
            await settle()
            assert answers == [1, 0]
            informer = running.engines["secret"].caches.owned[0]
            informer.synced.clear()
            running.engines["secret"].queue.add(Request(SPACE, "x"))
            await settle(1)
            assert [type(error) for error in answers[2:4]] == [TransientError] * 2
