"""Two controllers of one kind, each with a set: neither deletes what the other one made."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.apply_set import run
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-62")]

assert run  # loaded before a loop runs


class Making:
    """A reconciler with a set of one child, which is named after it."""

    def __init__(self, called: str, **options: Any) -> None:
        self.name = called
        self.options = options
        self.deleted = 0
        self.errors: list[str] = []

    async def __call__(self, ctx: Context[Secret]) -> None:
        if ctx.obj.type != "Opaque":
            return
        try:
            result = await ctx.apply_set(
                [ConfigMap(metadata=ObjectMeta(name=self.name), data={"a": "1"})], **self.options
            )
            self.deleted += len(result.deleted)
        except ValueError as error:
            self.errors.append(str(error))
            raise

    def controller(self, **options: Any) -> Controller[Secret]:
        return Controller(Secret, self, name=self.name, owns=[ConfigMap], **options)


async def children(client: Client) -> set[tuple[str, str]]:
    made = (item.metadata for item in (await client.list(ConfigMap)).items)
    return {(meta.namespace, meta.name) for meta in made if meta.owner_references}


async def both(client: Client, *controllers: Controller[Secret], label: str = "") -> set[tuple[str, str]]:
    """What they have made after a while, of a Secret here and one there."""
    await client.create(Namespace(metadata=ObjectMeta(name="there")))
    for namespace in (SPACE, "there"):
        meta = ObjectMeta(name="own", namespace=namespace, labels={"of": label} if label else {})
        await client.create(Secret(metadata=meta))
    manager = Manager(client)
    for controller in controllers:
        manager.add(controller)
    async with manager.running():
        await settle(5)
        return await children(client)


@pytest.mark.parametrize(
    "divided",
    [
        ({}, {}),
        ({"label_selector": "of=b"}, {}),
        ({"namespaces": (SPACE,)}, {}),
        ({"namespaces": (SPACE,)}, {"namespaces": (SPACE, "there")}),
        ({"label_selector": "of=b", "field_selector": "type=Opaque"}, {"label_selector": "of=b"}),
    ],
)
async def test_the_second_one_is_refused_and_says_what_to_do(client: Client, divided: Any) -> None:
    one, other = Making("one"), Making("other")
    await both(client, one.controller(**divided[0]), other.controller(**divided[1]), label="b")
    assert one.deleted == other.deleted == 0
    refused, kept = (one, other) if one.errors else (other, one)
    assert kept.errors == []
    assert f"apply_set(…, name='{refused.name}')" in refused.errors[0]
    assert kept.name in refused.errors[0]


async def test_sets_of_their_own_do_not_meet(client: Client) -> None:
    one, other = Making("one"), Making("other", name="other")
    made = await both(client, one.controller(), other.controller())
    assert made == {(space, name) for space in (SPACE, "there") for name in ("one", "other")}
    assert (one.errors, other.errors, one.deleted + other.deleted) == ([], [], 0)


@pytest.mark.parametrize("by", ["namespaces", "label_selector"])
async def test_controllers_that_divide_the_objects_may_use_the_same_name(client: Client, by: str) -> None:
    one, other = Making("one"), Making("other")
    options: Any = {"namespaces": ((SPACE,), ("there",)), "label_selector": ("of=a", "of=b")}[by]
    await both(client, one.controller(**{by: options[0]}), other.controller(**{by: options[1]}), label="b")
    assert (one.errors, other.errors) == ([], [])


async def test_what_is_only_compared_claims_nothing(client: Client) -> None:
    one, other = Making("one", dry_run=True), Making("other")
    made = await both(client, one.controller(), other.controller())
    assert made == {(SPACE, "other"), ("there", "other")}
    assert one.errors == other.errors == []
