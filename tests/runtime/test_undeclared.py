"""What a controller does without declaring it: one line in the log, which says what to declare."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Owns, Reconciler, Use, Watches
from konverge.runtime.undeclared import Undeclared
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-50")]

Do = Callable[[Context[Secret]], Awaitable[Any]]


async def nothing(ctx: Context[Secret]) -> None: ...


def test_what_to_declare_is_said_once_for_each_verb_of_a_kind() -> None:
    undeclared = Undeclared(Controller(Secret, nothing, uses=[Use(ConfigMap, "get", namespaces=("shop",))]))
    assert undeclared.describe(ConfigMap, ("get",), "shop") == ""
    assert undeclared.describe(ConfigMap, ("get",), "park") == (
        "get of ConfigMap in namespace park is not declared by this controller, so the generated role does not allow "
        'it: declare uses=[Use(ConfigMap, "get", namespaces=("park",))], or Use(ConfigMap, cached=True, '
        'namespaces=("park",)) to read it from a cache'
    )
    assert undeclared.describe(ConfigMap, ("get",), "park") == ""
    assert undeclared.describe(ConfigMap, ("get", "patch"), "shop", "apply") == (
        "apply of ConfigMap is not declared by this controller, so the generated role does not allow it: "
        'declare uses=[Use(ConfigMap, "apply")]'
    )
    assert undeclared.describe(ConfigMap, ("patch",), "") == ""
    assert undeclared.describe(ConfigMap, ("list",), "") == (
        "list of ConfigMap is not declared by this controller, so the generated role does not allow it: "
        'declare uses=[Use(ConfigMap, "list")], or Use(ConfigMap, cached=True) to read it from a cache'
    )
    assert [undeclared.grants(ConfigMap, "get", place) for place in ("shop", "park", "")] == [True, False, False]
    assert undeclared.grants(Secret, "watch", "park"), "its own kind, everywhere"


def test_what_is_granted_everywhere_is_remembered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    undeclared = Undeclared(Controller(Secret, nothing))
    assert undeclared.describe(Secret, ("get", "list"), "shop") == ""
    monkeypatch.delattr(undeclared, "_granted")
    assert undeclared.describe(Secret, ("get", "list"), "park") == ""


async def get(ctx: Context[Secret]) -> None:
    assert await ctx.get(ConfigMap, "present") is not None


async def list_all(ctx: Context[Secret]) -> None:
    assert len(await ctx.list(ConfigMap)) > 0


async def apply(ctx: Context[Secret]) -> None:
    await ctx.apply(config_map("child"))


async def apply_to_another(ctx: Context[Secret]) -> None:
    await ctx.apply(config_map("present", x="1"), own=False)


async def delete(ctx: Context[Secret]) -> None:
    await ctx.delete(ConfigMap, "present")


async def label(ctx: Context[Secret]) -> None:
    ctx.obj.metadata.labels["seen"] = "yes"
    await ctx.save_metadata()


async def lines(client: Client, do: Do, caplog: Any, **declared: Any) -> list[str]:
    """What is logged about declarations when a controller does this for two objects."""
    await client.create(config_map("present"))
    for name in ("a", "b"):
        await client.create(secret(name))

    async def reconcile(ctx: Context[Secret]) -> None:
        await do(ctx)
        done.append(ctx.request.name)

    done: list[str] = []
    with caplog.at_level(logging.WARNING):
        async with Manager(client).add(Controller(Secret, reconcile, **declared)).running():
            await settle()
    assert done, "it failed"
    return [entry.getMessage() for entry in caplog.records if "is not declared" in entry.getMessage()]


@pytest.mark.parametrize(
    ("do", "todo"),
    [
        (get, 'declare uses=[Use(ConfigMap, "get")], or Use(ConfigMap, cached=True) to read it from a cache'),
        (list_all, 'declare uses=[Use(ConfigMap, "list")], or Use(ConfigMap, cached=True) to read it from a cache'),
        (apply_to_another, 'declare uses=[Use(ConfigMap, "apply")]'),
        (delete, 'declare uses=[Use(ConfigMap, "delete")]'),
        (label, 'declare uses=[Use(Secret, "patch")]'),
    ],
)
async def test_the_line_says_what_to_declare_and_following_it_is_enough(
    client: Client, caplog: Any, do: Do, todo: str
) -> None:
    (line,) = await lines(client, do, caplog)
    assert line.endswith(todo)
    caplog.clear()
    declared = eval(todo.removeprefix("declare ").partition("], or")[0].removeprefix("uses=[").rstrip("]"))
    for name in ("present",):
        if do is not delete:
            await client.delete(ConfigMap, name, SPACE)
    for name in ("a", "b"):
        await client.delete(Secret, name, SPACE)
    assert await lines(client, do, caplog, uses=[declared]) == []


@pytest.mark.parametrize(
    ("do", "declared"),
    [
        (get, {"owns": [ConfigMap]}),
        (get, {"watches": [Watches(ConfigMap, requests=lambda cm: [], label_selector="none")]}),
        (list_all, {"uses": [Use(ConfigMap, cached=True)]}),
        (apply, {"owns": [ConfigMap]}),
        (apply, {"owns": [Owns(ConfigMap, metadata_only=True)]}),
        (apply, {"uses": [Use(ConfigMap, "apply")]}),
        (apply_to_another, {"uses": [Use(ConfigMap, "create", "patch")]}),
        (delete, {"owns": [ConfigMap]}),
    ],
)
async def test_nothing_is_said_about_what_is_declared(
    client: Client, caplog: Any, do: Do, declared: dict[str, Any]
) -> None:
    assert await lines(client, do, caplog, **declared) == []


@pytest.mark.parametrize(
    ("do", "verbs"), [(apply_to_another, ["create"]), (apply, ["get", "patch"]), (apply, ["create", "patch"])]
)
async def test_an_apply_needs_to_look_to_patch_and_to_create(client: Client, caplog: Any, do: Do, verbs: Any) -> None:
    (line,) = await lines(client, do, caplog, uses=[Use(ConfigMap, *verbs)])
    assert line.endswith('declare uses=[Use(ConfigMap, "apply")]')


async def test_what_is_declared_for_another_verb_does_not_count(client: Client, caplog: Any) -> None:
    (line,) = await lines(client, delete, caplog, uses=[Use(ConfigMap, "get", "patch")])
    assert line.startswith("delete of ConfigMap is not declared by this controller")


async def test_a_namespace_that_is_not_declared_is_named(client: Client, caplog: Any) -> None:
    async def far(ctx: Context[Secret]) -> None:
        assert await ctx.get(ConfigMap, "present", "kube-system") is None

    (line,) = await lines(client, far, caplog, uses=[Use(ConfigMap, "get", namespaces=(SPACE,))])
    assert line.startswith("get of ConfigMap in namespace kube-system is not declared")
    assert 'Use(ConfigMap, "get", namespaces=("kube-system",))' in line


async def test_a_live_read_may_be_declared_in_a_namespace_that_no_cache_has(client: Client, caplog: Any) -> None:
    async def both(ctx: Context[Secret]) -> None:
        assert await ctx.get(ConfigMap, "present") is not None
        assert await ctx.get(ConfigMap, "far", "kube-system") is not None

    await client.create(ConfigMap(metadata=ObjectMeta(name="far", namespace="kube-system")))
    uses = [Use(ConfigMap, cached=True), Use(ConfigMap, "get", namespaces=("kube-system",))]
    assert await lines(client, both, caplog, namespaces=(SPACE,), uses=uses) == []


async def test_a_controller_with_a_clean_up_may_patch_its_objects(client: Client, caplog: Any) -> None:
    class Cleaning(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            await label(ctx)

        async def cleanup(self, ctx: Context[Secret]) -> None:
            """There is nothing to clean up."""

    await client.create(secret("a"))
    with caplog.at_level(logging.WARNING):
        async with Manager(client).add(Controller(Secret, Cleaning())).running():
            await settle()
    assert (await client.get(Secret, "a", SPACE)).metadata.labels == {"seen": "yes"}
    assert "is not declared" not in caplog.text
