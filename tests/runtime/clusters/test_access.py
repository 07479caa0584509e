"""What a reconcile writes in another cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Request, Use, Watches, dependencies
from konverge.runtime.clusters import FixedClusters
from konverge.runtime.clusters import fleet as loaded
from konverge.runtime.clusters.roles import at_home, permissions_elsewhere
from tests.runtime.clusters.places import places
from tests.runtime.clusters.test_fleet import SELECTED, manager
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-83")]

assert loaded  # before a loop runs


@pytest.mark.parametrize("field_manager", ["mine", ""])
async def test_a_field_that_is_left_out_is_given_up_in_other_clusters_too(field_manager: str) -> None:
    data = {"k": "1", "old": "1"}

    async def reconcile(ctx: Context[Secret]) -> None:
        if ctx.request.name == "x":
            for name in ("a", ""):
                meta = ObjectMeta(name="child", namespace=SPACE)
                await ctx.clusters[name].apply(ConfigMap(metadata=meta, data=dict(data)))

    options: Any = {"field_manager": field_manager} if field_manager else {}
    watch = Watches(ConfigMap, requests=lambda _: [Request(SPACE, "x")], clusters="others")
    uses = [Use(ConfigMap, "apply", cached=True)]
    declared = Controller(Secret, reconcile, watches=[watch], uses=uses, **SELECTED, **options)
    async with places("home", "a") as [home, a]:
        await home.create("x")
        async with manager(home.client, FixedClusters({"a": a.connect()}), declared).running():
            await settle(60)
            del data["old"]
            await home.client.patch(Secret, "x", MergePatch({"metadata": {"labels": {"again": "1"}}}), SPACE)
            await settle()
        for place in (home, a):
            child = await place.client.get(ConfigMap, "child", SPACE)
            assert child.data == {"k": "1"}
            assert {entry.manager for entry in child.metadata.managed_fields or ()} == {field_manager or "copies"}


def test_what_is_needed_elsewhere_is_listed_in_order() -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    uses = [Use(ConfigMap, "get", "patch", "delete"), Use(Secret, "patch")]
    needed = permissions_elsewhere([Controller(Secret, reconcile, clusters="others", uses=uses)])
    assert needed == sorted(needed)
    assert {f"{each.verb} {each.resource}" for each in needed} >= {"delete configmaps", "watch secrets"}


def test_what_is_watched_elsewhere_is_needed_in_its_namespaces() -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    def watching(kind: type[ConfigMap | Namespace], **options: Any) -> Controller[Secret]:
        watch = Watches(kind, requests=lambda _: [], clusters="others", **options)
        return Controller(Secret, reconcile, watches=[watch], namespaces=("shop",))

    def needed(controller: Controller[Secret]) -> set[tuple[str, str]]:
        return {(each.resource, each.namespace) for each in permissions_elsewhere([controller])}

    assert needed(watching(ConfigMap)) == {("configmaps", "shop")}
    assert needed(watching(ConfigMap, namespaces=("a", "b"))) == {("configmaps", "a"), ("configmaps", "b")}
    assert needed(watching(Namespace)) == {("namespaces", "")}
    declared = [Controller(Secret, reconcile, name=where, clusters=where) for where in ("home", "others", "all")]
    assert [controller.name for controller in at_home(declared)] == ["home", "all"]


async def test_no_reconcile_begins_elsewhere_before_what_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    there = loop.time() + 60

    async def connects(address: str) -> bool:
        return loop.time() >= there

    async def reconcile(ctx: Context[Secret]) -> None:
        began.append(loop.time())

    monkeypatch.setattr(dependencies, "_connects", connects)
    began: list[float] = []
    async with places("home", "a") as [home, a]:
        await a.create("x")
        late = Controller(Secret, reconcile, clusters="others", depends_on=["tcp://db:3306"], **SELECTED)
        async with manager(home.client, FixedClusters({"a": a.connect()}), late).running():
            await settle(70)
    assert [there <= time < there + 5 for time in began] == [True]
