"""Index functions of objects."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Index, Manager, Owns, Use, Watches
from konverge.runtime.indexing import index_functions
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle

pytestmark = pytest.mark.virtual


def colours(cm: ConfigMap) -> Iterable[str]:
    return cm.data.get("colours", "").split()


class Asked:
    """Asks for the red ones in every reconcile."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    async def __call__(self, ctx: Context[Secret]) -> None:
        self.answers.append(sorted(cm.metadata.name for cm in ctx.indexed(ConfigMap, "colour", "red")))


@pytest.mark.spec("R-51")
@pytest.mark.parametrize(
    "indexes",
    [
        [Index(ConfigMap, "colour", colours)],
        {ConfigMap: {"colour": colours}},
        {ConfigMap: {"colour": lambda record, meta: meta.labels.get("colours", "").split()}},
    ],
    ids=["typed", "by kind", "of records"],
)
async def test_objects_are_found_by_what_the_function_gives(client: Client, indexes: Any) -> None:
    for name, given in (("a", "red"), ("b", "blue red"), ("c", "blue")):
        cm = config_map(name, colours=given)
        cm.metadata.labels = {"colours": given} if " " not in given else {"colours": "red"}
        await client.create(cm)
    await client.create(secret("s"))
    asked = Asked()
    controller = Controller(Secret, asked, watches=[Watches(ConfigMap, requests=lambda cm: [])], indexes=indexes)
    async with Manager(client).add(controller).running():
        await settle()
    assert asked.answers == [["a", "b"]]


@pytest.mark.spec("R-51")
async def test_controllers_that_declare_the_same_function_share_the_index(client: Client) -> None:
    def other(cm: ConfigMap) -> list[str]:
        return [cm.metadata.name]

    manager = Manager(client)
    for name, function in (("one", colours), ("two", colours), ("three", other)):
        uses = [Use(ConfigMap, cached=True)]
        manager.add(Controller(Secret, Asked(), name=name, uses=uses, indexes=[Index(ConfigMap, "colour", function)]))
    async with manager.running():
        (informer,) = [each for each in manager.caches.informers.values() if each.spec.resource == ConfigMap.resource]
        assert len(informer._indexes) == 2


@pytest.mark.spec("R-52")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda cm: cm.data["no such key"],
        lambda cm: "red",
        lambda cm: None,
        lambda cm: [{"not": "hashable"}],
        lambda cm: [["nor this"]],
        lambda cm: 7,
    ],
    ids=["raises", "text", "None", "dict", "list", "number"],
)
async def test_a_function_that_fails_costs_its_object_alone(client: Client, caplog: Any, wrong: Any) -> None:
    def picky(cm: ConfigMap) -> Any:
        return wrong(cm) if cm.metadata.name == "bad" else ["red"]

    for name in ("bad", "good"):
        await client.create(config_map(name))
    await client.create(secret("s"))
    asked, seen = Asked(), []

    def requests(cm: ConfigMap) -> list[Any]:
        seen.append((cm.metadata.name, cm.data.get("n")))
        return []

    controller = Controller(
        Secret,
        asked,
        namespaces=(SPACE,),
        watches=[Watches(ConfigMap, requests=requests)],
        indexes=[Index(ConfigMap, "colour", picky)],
    )
    with caplog.at_level(logging.CRITICAL):
        async with Manager(client).add(controller).running() as manager:
            await settle()
            assert asked.answers == [["good"]]
            for name in ("bad", "good"):  # the watch goes on, with the bad object too
                await client.patch(ConfigMap, name, MergePatch({"data": {"n": "2"}}), SPACE)
            await settle()
            assert {("bad", "2"), ("good", "2")} <= set(seen)
            quarantined = [entry for each in manager.caches.informers.values() for entry in each.quarantine]
            assert [(entry.key.name, entry.stage) for entry in quarantined] == [
                ("bad", "cannot be indexed by 'colour'")
            ]


@pytest.mark.spec("R-51")
async def test_functions_get_what_the_cache_keeps(client: Client) -> None:
    """Of a cache of metadata, an object without data: a function that wants more is contained."""
    got: list[Any] = []

    def names(cm: ConfigMap) -> list[str]:
        got.append(("index", hasattr(cm, "data")))
        return [cm.metadata.name]

    def when(old: ConfigMap | None, new: ConfigMap | None) -> bool:
        got.append(("when", hasattr(new, "data")))
        return True

    await client.create(config_map("a", x="1"))
    owned = Owns(ConfigMap, metadata_only=True, when=when)
    controller = Controller(Secret, Asked(), owns=[owned], indexes=[Index(ConfigMap, "name", names)])
    async with Manager(client).add(controller).running() as manager:
        await settle()
        assert [entry for each in manager.caches.informers.values() for entry in each.quarantine] == []
    assert set(got) == {("index", False), ("when", False)}


def test_a_copy_of_a_controller_has_the_same_functions() -> None:
    functions = index_functions([Index(ConfigMap, "colour", colours)])
    assert functions == index_functions({ConfigMap: {"colour": colours}})
    assert index_functions(functions) == functions
