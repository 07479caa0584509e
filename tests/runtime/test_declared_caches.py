"""Every declaration of a kind gets the cache that it asks for, and no read gives a wrong answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from konverge.cache import Meta, Record
from konverge.client import Client, MergePatch, Recording
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Request, Result, Use, Watches
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.writes import selected_by_fields
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-09", "R-11")]

TRIGGER = "trigger"
Ask = Callable[[Context[ConfigMap]], Awaitable[Any]]


def labelled(name: str, namespace: str = SPACE, **values: str) -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace, labels=values))


def watch(seen: list[str], **options: Any) -> Watches[Secret]:
    """A watch that notes the objects it receives."""

    def requests(obj: Secret) -> Iterable[Request]:
        seen.append(obj.metadata.name)
        return [Request(SPACE, TRIGGER)]

    return Watches(Secret, requests=requests, **options)


async def ask(client: Client, question: Ask, **declared: Any) -> Any:
    """What a reconcile answers, or the error that it raises; the controller reconciles one ConfigMap."""
    answers: list[Any] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        try:
            answers.append(await question(ctx))
        except LookupError as error:
            answers.append(error)

    controller = Controller(ConfigMap, reconcile, field_selector=f"metadata.name={TRIGGER}", **declared)
    await client.create(config_map(TRIGGER))
    async with Manager(client).add(controller).running():
        await settle()
    return answers[0]


def names(objects: Any) -> list[str]:
    return [obj.metadata.name for obj in objects]


# ------------------------------------------------------------------ who receives what


async def test_two_watches_of_a_kind_with_different_selectors_each_get_their_own(client: Client) -> None:
    for made in (labelled("red", color="red"), labelled("blue", color="blue"), labelled("none")):
        await client.create(made)
    red: list[str] = []
    blue: list[str] = []
    named: list[str] = []
    everything: list[str] = []
    watches = [
        watch(red, label_selector="color=red"),
        watch(blue, label_selector="color=blue"),
        watch(named, field_selector="metadata.name=none"),
        watch(everything),
    ]

    async def question(ctx: Context[ConfigMap]) -> None: ...

    await ask(client, question, watches=watches)
    assert (red, blue, named, sorted(everything)) == (["red"], ["blue"], ["none"], ["blue", "none", "red"])


async def test_watches_of_different_namespaces_each_get_their_own(client: Client) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="there")))
    await client.create(labelled("far", "there"))
    await client.create(labelled("near"))
    far: list[str] = []
    near: list[str] = []

    async def question(ctx: Context[ConfigMap]) -> Any:
        lister = ctx.caches.lister(Secret)  # of the controller's own namespaces
        assert lister is not None
        assert names(lister.list()) == ["near"]
        return await ctx.get(Secret, "far", "there"), await ctx.get(Secret, "near")

    watches = [watch(far, namespaces=("there",)), watch(near)]
    answer = await ask(client, question, watches=watches, namespaces=(SPACE,))
    assert (far, near) == (["far"], ["near"])
    assert names(answer) == ["far", "near"]


@pytest.mark.parametrize("first", ["owns", "watch"])
async def test_owned_objects_are_all_seen_beside_a_selective_watch(client: Client, first: str) -> None:
    """The order in which they are declared is the order of the caches, whatever the controller lists first."""

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == TRIGGER:
            runs.append([str(reason) for reason in ctx.reasons])
            await ctx.apply(labelled("child", color="none"))
            owned.append(names(await ctx.owned(Secret)))

    runs: list[list[str]] = []
    owned: list[list[str]] = []
    seen: list[str] = []
    kind: dict[str, Any] = {"owns": [Secret], "watches": [watch(seen, label_selector="color=red")]}
    declared = kind if first == "owns" else dict(reversed(kind.items()))
    await client.create(config_map(TRIGGER))
    async with Manager(client).add(Controller(ConfigMap, reconcile, **declared)).running():
        await settle()
        assert len(runs) == 1
        await client.patch(Secret, "child", MergePatch({"data": {"drift": "MQ=="}}), SPACE)
        await settle()
        assert len(runs) == 2  # a child without the label of the watch
        assert owned[-1] == ["child"]
        await client.create(labelled("red", color="red"))
        await settle()
        assert len(runs) == 3
    assert seen == ["red"]


async def test_equal_declarations_share_one_cache(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    manager = Manager(client)
    for name in ("one", "two"):
        selected = watch([], label_selector="color=red")
        manager.add(
            Controller(
                ConfigMap, reconcile, name=name, owns=[Secret], watches=[selected], uses=[Use(Secret, cached=True)]
            )
        )
    async with manager.running():
        specs = sorted(str(spec) for spec in manager.caches.informers)
    assert specs == ["configmaps", "secrets", "secrets with color=red"]


# ------------------------------------------------------------------ indexes


def by_length(record: Record, meta: Meta) -> Iterable[str]:
    return [str(len(meta.name))]


def by_first(record: Record, meta: Meta) -> Iterable[str]:
    return [meta.name[0]]


async def test_controllers_with_the_same_index_name_keep_their_functions(client: Client) -> None:
    async def first(ctx: Context[ConfigMap]) -> None:
        answers["first"] = names(ctx.indexed(Secret, "group", "3"))

    async def second(ctx: Context[ConfigMap]) -> None:
        answers["second"] = names(ctx.indexed(Secret, "group", "b"))

    async def third(ctx: Context[ConfigMap]) -> None:
        answers["third"] = names(ctx.indexed(Secret, "group", "3"))

    answers: dict[str, list[str]] = {}
    for made in ("abc", "bcde", "xyz"):
        await client.create(secret(made))
    await client.create(config_map(TRIGGER))
    manager = Manager(client)
    for name, reconcile, function in (("1", first, by_length), ("2", second, by_first), ("3", third, by_length)):
        indexes: Any = {Secret: {"group": function}}
        manager.add(Controller(ConfigMap, reconcile, name=name, uses=[Use(Secret, cached=True)], indexes=indexes))
    async with manager.running():
        await settle()
        assert len(manager.caches.informers) == 2
    assert answers == {"first": ["abc", "xyz"], "second": ["bcde"], "third": ["abc", "xyz"]}


async def test_an_index_that_this_controller_did_not_declare_is_an_error(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        with pytest.raises(LookupError, match=r"Secret has no index 'group' .*indexes=\{Secret: \{'group'"):
            ctx.indexed(Secret, "group", "a")
        with pytest.raises(LookupError, match="declare it with owns="):
            await ctx.owned(Secret)
        runs.append(1)

    async def other(ctx: Context[ConfigMap]) -> None: ...

    runs: list[int] = []
    await client.create(config_map(TRIGGER))
    manager = Manager(client).add(Controller(ConfigMap, reconcile, uses=[Use(Secret, cached=True)]))
    indexes: Any = {Secret: {"group": by_first}}
    manager.add(Controller(ConfigMap, other, name="other", owns=[Secret], indexes=indexes))
    async with manager.running():
        await settle()
    assert set(runs) == {1}


async def test_the_index_of_owners_cannot_be_replaced(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    indexes: Any = {Secret: {"owner": by_first}}
    manager = Manager(client).add(Controller(ConfigMap, reconcile, owns=[Secret], indexes=indexes))
    with pytest.raises(ValueError, match="built in"):
        async with manager.running():
            pass


# ------------------------------------------------------------------ which cache answers


async def test_a_whole_cache_answers_before_a_selective_one(client: Client) -> None:
    await client.create(labelled("plain"))
    await client.create(labelled("red", color="red"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        whole = names(await ctx.list(Secret))
        before = len(recording.calls)
        got = [await ctx.get(Secret, name) for name in ("plain", "red", "absent")]
        return whole, [obj and obj.metadata.name for obj in got], recording.calls[before:]

    recording = Recording(client)
    declared = {"watches": [watch([], label_selector="color=red")], "uses": [Use(Secret, cached=True)]}
    answer = await ask(recording, question, **declared)
    assert answer == (["plain", "red"], ["plain", "red", None], [])


async def test_what_a_selective_cache_cannot_know_is_read_live(client: Client) -> None:
    await client.create(labelled("plain"))
    await client.create(labelled("red", color="red", size="big"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        async def count(read: Awaitable[Any]) -> tuple[list[str], int]:
            before = len(recording.calls)
            answer = await read
            objects = answer if isinstance(answer, list) else [answer] if answer is not None else []
            return names(objects), len(recording.calls) - before

        return [
            await count(ctx.get(Secret, "red")),
            await count(ctx.get(Secret, "plain")),
            await count(ctx.get(Secret, "absent")),
            await count(ctx.list(Secret)),
            await count(ctx.list(Secret, selector=labels.parse("color=red"))),
            await count(ctx.list(Secret, selector=labels.parse("color=red,size=big"))),
            await count(ctx.list(Secret, selector=labels.parse("size=big"))),
        ]

    recording = Recording(client)
    answer = await ask(recording, question, watches=[watch([], label_selector="color=red")])
    assert answer == [
        (["red"], 0),
        (["plain"], 1),
        ([], 1),
        (["plain", "red"], 1),
        (["red"], 0),
        (["red"], 0),
        (["red"], 1),
    ]


async def test_a_watch_of_one_name_answers_for_that_name(client: Client) -> None:
    await client.create(secret("plain"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        before = len(recording.calls)
        got = [await ctx.get(Secret, name) for name in ("one", "plain")]
        everything = names(await ctx.list(Secret))
        return [obj and obj.metadata.name for obj in got], everything, len(recording.calls) - before

    recording = Recording(client)
    answer = await ask(recording, question, watches=[watch([], field_selector="metadata.name=one")])
    assert answer == ([None, "plain"], ["plain"], 2)


@pytest.mark.parametrize(
    "question",
    [
        lambda ctx: ctx.get(Secret, "far", "there"),
        lambda ctx: ctx.list(Secret, "there"),
        lambda ctx: ctx.list(Secret, ""),
    ],
    ids=["get", "list", "all"],
)
async def test_a_read_outside_of_the_declared_namespaces_is_an_error(client: Client, question: Ask) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="there")))
    await client.create(labelled("far", "there"))
    error = await ask(client, question, uses=[Use(Secret, cached=True)], namespaces=(SPACE,))
    assert isinstance(error, LookupError)
    assert "Secret is declared in default" in str(error)
    assert "namespaces=" in str(error)


async def test_several_selective_caches_have_no_lister(client: Client) -> None:
    async def question(ctx: Context[ConfigMap]) -> Any:
        return ctx.caches.lister(Secret)

    watches = [watch([], label_selector="color=red"), watch([], label_selector="color=blue")]
    error = await ask(client, question, watches=watches)
    assert isinstance(error, LookupError)
    assert "uses=[Use(Secret, cached=True)]" in str(error)


async def test_the_cache_of_an_undeclared_kind_is_none_and_of_a_selective_watch_its_own(client: Client) -> None:
    await client.create(labelled("plain"))
    await client.create(labelled("red", color="red"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        lister = ctx.caches.lister(Secret)
        assert lister is not None
        return ctx.caches.lister(Namespace), names(lister.list())

    assert await ask(client, question, watches=[watch([], label_selector="color=red")]) == (None, ["red"])


# ------------------------------------------------------------------ writes


async def test_own_writes_are_seen_in_every_cache_that_shows_them(client: Client) -> None:
    """One object is in two caches: the next reconcile sees its write in both, and neither event starts another one."""

    async def reconcile(ctx: Context[ConfigMap]) -> Result | None:
        if ctx.request.name != TRIGGER:
            return None
        whole, red = (informer.get(Request(SPACE, "child")) for informer in manager.engines["configmap"].caches.watched)
        seen.append((whole.version if whole else 0, red.version if red else 0))
        await ctx.client.patch(Secret, "child", MergePatch({"metadata": {"annotations": {"n": str(len(seen))}}}), SPACE)
        return Result(requeue_after=1) if len(seen) < 5 else None

    seen: list[tuple[int, int]] = []
    await client.create(labelled("child", color="red"))
    selected = watch([], label_selector="color=red")
    manager = Manager(client).add(
        Controller(ConfigMap, reconcile, watches=[watch([]), selected], uses=[Use(Secret, "patch")])
    )
    async with manager.running():
        await settle()
        seen.clear()
        await client.create(config_map(TRIGGER))
        await settle(30)
        echoes = manager.engines["configmap"].numbers.echoes
    assert len(seen) == 5
    assert all(whole == red for whole, red in seen)
    assert len(set(seen)) == 5
    assert echoes == 10


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name=b", False),
        ("metadata.name!=b", True),
        ("metadata.name!=a", False),
        ("metadata.name=a,spec.unschedulable=true", True),
        ("metadata.name=a,spec.unschedulable=false", False),
        ("spec.missing=", True),
        ("spec.missing=x", False),
        ("metadata.name.deeper=x", False),
    ],
)
def test_field_selectors_are_evaluated_on_what_was_written(selector: str, selected: bool) -> None:
    assert selected_by_fields(selector, b'{"metadata": {"name": "a"}, "spec": {"unschedulable": true}}') is selected


def test_a_task_that_applies_no_set_of_its_own_claims_none() -> None:
    caches = DeclaredCaches(None)
    caches.claim_set("children")
    assert caches.sets == {}
