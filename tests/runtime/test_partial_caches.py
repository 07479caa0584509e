"""Declared caches that keep less than the whole object: what is read from them, what is not, and what is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from konverge.cache.quarantine import Unreadable
from konverge.client import Client, MergePatch, Recording
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import Object, ObjectMeta, PartialObjectMetadata, metadata_of
from konverge.runtime import Context, Controller, Index, Manager, Owns, Request, Use, Watches
from konverge.runtime.rbac import permissions
from tests.runtime.objects import SPACE, config_map
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-56")]

TRIGGER = "trigger"
Ask = Callable[[Context[ConfigMap]], Awaitable[Any]]
SecretMetadata = metadata_of(Secret)


class SecretType(Object):
    """A Secret without its content."""

    resource = Secret.resource
    type: str = ""


def sizes(secret: dict[str, Any]) -> dict[str, Any]:
    """Keeps of the content nothing but its sizes."""
    if "bad" in secret["metadata"]["name"]:
        raise RuntimeError("not this one")
    secret["data"] = {name: str(len(value)) for name, value in secret.get("data", {}).items()}
    return secret


FORMS: dict[str, tuple[dict[str, Any], type[Object]]] = {
    "metadata": ({"metadata_only": True}, SecretMetadata),
    "projection": ({"project": SecretType}, SecretType),
}
EVERY_FORM = {**FORMS, "transform": ({"transform": sizes}, Secret)}


def secret(name: str, namespace: str = SPACE, **values: str) -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace, labels=values), data={"k": "dmFsdWU="})


def trigger(obj: Object) -> Iterable[Request]:
    return [Request(SPACE, TRIGGER)]


async def ask(client: Client, question: Ask, **declared: Any) -> Any:
    """What a reconcile answers, or the error that it raises; the controller reconciles one ConfigMap."""
    answers: list[Any] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        try:
            answers.append(await question(ctx))
        except (LookupError, Unreadable) as error:
            answers.append(error)

    controller = Controller(ConfigMap, reconcile, field_selector=f"metadata.name={TRIGGER}", **declared)
    await client.create(config_map(TRIGGER))
    async with Manager(client).add(controller).running():
        await settle()
    return answers[0]


def reads(recording: Recording) -> list[str]:
    """The Secrets that were got one by one."""
    calls = (call for call in recording.calls if call.resource == Secret.resource and call.verb == "get")
    return [call.name for call in calls]


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("form", FORMS)
async def test_a_partial_cache_is_read_by_the_class_of_what_it_keeps(client: Client, form: str) -> None:
    options, kept = FORMS[form]
    await client.create(secret("one", app="web"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        before = len(recording.calls)
        got = await ctx.get(kept, "one")
        assert got is not None
        assert (got.kind, got.api_version, got.metadata.labels) == ("Secret", "v1", {"app": "web"})
        assert not hasattr(got, "data")
        assert getattr(got, "type", "Opaque") == "Opaque"
        assert await ctx.get(kept, "absent") is None
        assert [obj.metadata.name for obj in await ctx.list(kept, selector=labels.parse("app=web"))] == ["one"]
        assert [obj.metadata.name for obj in ctx.indexed(kept, "app", "web")] == ["one"]
        assert ctx.serves(Secret)
        return recording.calls[before:]

    recording = Recording(client)
    indexes = [Index(Secret, "app", lambda obj: [obj.metadata.labels.get("app", "")])]
    declared = {"watches": [Watches(Secret, requests=trigger, **options)], "indexes": indexes}
    assert await ask(recording, question, **declared) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "question",
    [
        lambda ctx: ctx.get(Secret, "one"),
        lambda ctx: ctx.list(Secret),
        lambda ctx: ctx.list(Secret, selector=labels.parse("app=web")),
        lambda ctx: ctx.owned(Secret),
    ],
    ids=["get", "list", "selected", "owned"],
)
async def test_no_read_of_whole_objects_is_answered_by_a_partial_cache(
    client: Client, question: Ask, form: str
) -> None:
    options, kept = FORMS[form]
    await client.create(secret("one", app="web"))
    recording = Recording(client)
    error = await ask(recording, question, owns=[Owns(Secret, **options)])
    assert isinstance(error, LookupError)
    assert kept.__name__ in str(error), "it says what can be read"
    assert 'Use(Secret, "get")' in str(error), "and how to read more"
    assert reads(recording) == []


@pytest.mark.parametrize("form", FORMS)
async def test_whole_objects_are_read_live_where_that_is_declared(
    client: Client, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    options, kept = FORMS[form]
    await client.create(secret("one"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        whole, part = await ctx.get(Secret, "one"), await ctx.get(kept, "one")
        assert await ctx.get(Secret, "absent") is None
        with pytest.raises(LookupError):
            await ctx.list(Secret)  # the verb get is no permission to list
        return whole and whole.data, part and part.metadata.name

    recording = Recording(client)
    uses = [Use(Secret, "get")]
    answer = await ask(recording, question, watches=[Watches(Secret, requests=trigger, **options)], uses=uses)
    assert answer == ({"k": "dmFsdWU="}, "one")
    assert reads(recording) == ["one", "absent"]
    assert "goes to the API server" not in caplog.text


async def test_a_whole_cache_beside_a_partial_one_answers_everything(client: Client) -> None:
    await client.create(secret("one"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        before = len(recording.calls)
        whole = [await ctx.get(Secret, "one"), *await ctx.list(Secret), *await ctx.owned(Secret)]
        parts = [await ctx.get(form, "one") for form in (SecretMetadata, SecretType)]
        return [obj.data for obj in whole if obj], [obj and obj.kind for obj in parts], recording.calls[before:]

    recording = Recording(client)
    watches = [Watches(Secret, requests=trigger, **options) for options, _ in EVERY_FORM.values()]
    answer = await ask(recording, question, watches=watches, owns=[Secret])
    assert answer == ([{"k": "dmFsdWU="}] * 2, ["Secret"] * 2, [])


async def test_a_transform_is_read_as_the_kind(client: Client) -> None:
    for name in ("good", "bad"):
        await client.create(secret(name))

    async def question(ctx: Context[ConfigMap]) -> Any:
        good = await ctx.get(Secret, "good")
        with pytest.raises(Unreadable, match="default/bad cannot be read: not this one"):
            await ctx.get(Secret, "bad")
        with pytest.raises(Unreadable, match="default/bad"):
            await ctx.list(Secret)  # never a list without it
        with pytest.raises(LookupError):
            await ctx.get(SecretMetadata, "good")  # a transform may have dropped some of it
        return good and good.data

    recording = Recording(client)
    answer = await ask(recording, question, uses=[Use(Secret, cached=True, transform=sizes)])
    assert answer == {"k": "8"}
    assert reads(recording) == [], "an object that the transform fails on is not shown as it is on the server"


async def test_what_a_transformed_cache_cannot_know_is_an_error(client: Client) -> None:
    await client.create(secret("other"))
    watches = [Watches(Secret, requests=trigger, transform=sizes, label_selector="app=web")]
    error = await ask(client, lambda ctx: ctx.get(Secret, "other"), watches=watches)
    assert isinstance(error, LookupError)
    assert "transform" in str(error)


@pytest.mark.parametrize("form", EVERY_FORM)
async def test_selectors_and_namespaces_are_those_of_each_declaration(client: Client, form: str) -> None:
    options, _ = EVERY_FORM[form]
    await client.create(Namespace(metadata=ObjectMeta(name="there")))
    for made in (secret("in", "there", app="web"), secret("out", "there"), secret("here", app="web")):
        await client.create(made)

    async def question(ctx: Context[ConfigMap]) -> Any:
        (informer,) = [each for each in manager_caches(ctx) if each.spec.resource == Secret.resource]
        return sorted(str(key) for key, _ in informer.items())

    def manager_caches(ctx: Context[ConfigMap]) -> Any:
        return ctx.caches.by_resource[Secret.resource]  # type: ignore[attr-defined]

    watches = [Watches(Secret, requests=trigger, label_selector="app=web", namespaces=("there",), **options)]
    assert await ask(client, question, watches=watches, namespaces=(SPACE,)) == ["there/in"]


# ------------------------------------------------------------------ events


@pytest.mark.parametrize("form", FORMS)
async def test_functions_of_the_author_get_what_is_kept(client: Client, form: str) -> None:
    """A function that reads what is not kept fails on each object, and that is reported: it is not given empty data."""
    options, kept = FORMS[form]
    seen: list[Any] = []
    runs: list[Request] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        runs.append(ctx.request)

    def requests(obj: Any) -> Iterable[Request]:
        seen.append(type(obj))
        return trigger(obj)

    def counts(old: Any, new: Any) -> bool:
        seen.extend(type(obj) for obj in (old, new) if obj is not None)
        return True

    def by_content(obj: Any) -> Iterable[str]:
        return list(obj.data)

    controller = Controller(
        ConfigMap,
        reconcile,
        watches=[Watches(Secret, requests=requests, when=counts, **options)],
        indexes=[Index(Secret, "content", by_content)],
    )
    await client.create(config_map(TRIGGER))
    manager = Manager(client).add(controller)
    async with manager.running():
        await settle()
        runs.clear()
        await client.create(secret("one"))
        await settle()
        assert runs == [Request(SPACE, TRIGGER)]
        assert set(seen) == {kept}
        (informer,) = [each for each in manager.caches.informers.values() if each.spec.resource == Secret.resource]
        assert [(entry.key.name, entry.stage) for entry in informer.quarantine if entry.key.name == "one"] == [
            ("one", "cannot be indexed by 'content'")
        ]


async def test_a_class_of_metadata_declares_metadata_only(client: Client) -> None:
    seen: list[PartialObjectMetadata] = []

    def requests(obj: PartialObjectMetadata) -> Iterable[Request]:
        seen.append(obj)
        return ()

    async def question(ctx: Context[ConfigMap]) -> Any:
        return [informer.spec.metadata_only for informer in ctx.caches.by_resource[Secret.resource]]  # type: ignore[attr-defined]

    await client.create(secret("one"))
    watches = [Watches(metadata_of(Secret), requests=requests)]
    assert await ask(client, question, watches=watches) == [True]
    assert [obj.metadata.name for obj in seen] == ["one"]


async def test_a_transform_that_raises_costs_that_object_alone(client: Client) -> None:
    seen: list[str] = []

    def requests(obj: Secret) -> Iterable[Request]:
        seen.append(obj.metadata.name)
        return ()

    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    controller = Controller(ConfigMap, reconcile, watches=[Watches(Secret, requests=requests, transform=sizes)])
    await client.create(secret("bad-before"))
    async with Manager(client).add(controller).running():
        await client.create(secret("bad-after"))
        await client.create(secret("good"))
        await settle()
        await client.delete(Secret, "bad-after", SPACE)
        await client.patch(Secret, "good", MergePatch({"data": {"l": "eA=="}}), SPACE)
        await settle()
    assert set(seen) == {"good"}
    assert len(seen) >= 2, "events go on after objects that the transform failed on"


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize("form", EVERY_FORM)
async def test_what_is_applied_is_compared_with_the_object_and_not_with_what_is_kept_of_it(
    client: Client, form: str
) -> None:
    options, _ = EVERY_FORM[form]
    written: list[bool] = []

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        written.append(await ctx.apply(secret("child", app="web")))

    recording = Recording(client)
    controller = Controller(
        ConfigMap, reconcile, owns=[Owns(Secret, **options)], field_selector=f"metadata.name={TRIGGER}"
    )
    await client.create(config_map(TRIGGER))
    async with Manager(recording).add(controller).running():
        await settle()
        assert written == [True]
        assert reads(recording) == [], "any cache says that it does not exist"
        await client.patch(ConfigMap, TRIGGER, MergePatch({"data": {"again": "1"}}), SPACE)
        await settle()
        assert written == [True, False], "no fields are missing: they were only not kept"
        await client.patch(Secret, "child", MergePatch({"data": {"k": "b3RoZXI="}}), SPACE)
        await settle()
        assert written[2], "a change of content that no cache keeps"
    child = await client.get(Secret, "child", SPACE)
    assert child.data == {"k": "dmFsdWU="}


@pytest.mark.parametrize("form", EVERY_FORM)
async def test_an_object_of_another_owner_is_left_alone(client: Client, form: str) -> None:
    options, _ = EVERY_FORM[form]
    await client.create(secret("child"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        with pytest.raises(Exception, match="child"):
            await ctx.apply(secret("child", app="web"))

    await ask(client, question, owns=[Owns(Secret, **options)])
    assert (await client.get(Secret, "child", SPACE)).metadata.labels == {}


@pytest.mark.parametrize("form", EVERY_FORM)
async def test_the_object_that_is_deleted_is_the_one_that_the_cache_shows(client: Client, form: str) -> None:
    options, _ = EVERY_FORM[form]
    made = await client.create(secret("one"))

    async def question(ctx: Context[ConfigMap]) -> Any:
        return await ctx.delete(Secret, "one"), await ctx.delete(Secret, "absent")

    recording = Recording(client)
    assert await ask(recording, question, owns=[Owns(Secret, **options)]) == (True, False)
    (call,) = [call for call in recording.calls if call.verb == "delete" and call.resource == Secret.resource]
    assert made.metadata.uid.encode() in call.body


@pytest.mark.parametrize("form", EVERY_FORM)
async def test_a_set_of_children_is_pruned_whatever_is_kept_of_them(client: Client, form: str) -> None:
    options, _ = EVERY_FORM[form]

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        await ctx.apply_set([secret(name) for name in ctx.obj.data])

    controller = Controller(
        ConfigMap, reconcile, owns=[Owns(Secret, **options)], field_selector=f"metadata.name={TRIGGER}"
    )
    await client.create(config_map(TRIGGER, one="", two=""))
    async with Manager(client).add(controller).running():
        await settle()
        assert sorted(obj.metadata.name for obj in await client.list(Secret, SPACE)) == ["one", "two"]
        await client.patch(ConfigMap, TRIGGER, MergePatch({"data": {"one": None}}), SPACE)
        await settle()
    assert [obj.metadata.name for obj in await client.list(Secret, SPACE)] == ["two"]


# ------------------------------------------------------------------ sharing and declaring


async def test_equal_options_share_a_cache_and_different_ones_do_not(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    manager = Manager(client)
    for name in ("one", "two"):
        every = [Watches(Secret, requests=trigger, **options) for options, _ in EVERY_FORM.values()]
        manager.add(Controller(ConfigMap, reconcile, name=name, watches=[*every, Watches(Secret, requests=trigger)]))
    async with manager.running():
        specs = sorted(str(spec) for spec in manager.caches.informers)
    assert specs == [
        "configmaps", "secrets", "secrets (as SecretType)", "secrets (changed by sizes)", "secrets (metadata only)",
    ]  # fmt: skip


class OfNothing(Object):
    """Does not say what it is a part of."""


class OfAnother(Object):
    resource = ConfigMap.resource


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"project": OfNothing}, "resource = Secret.resource"),
        ({"project": OfAnother}, "resource = Secret.resource"),
        ({"project": SecretType, "metadata_only": True}, "leave one of them out"),
    ],
)
@pytest.mark.parametrize("declare", [Owns, Watches, lambda kind, **options: Use(kind, cached=True, **options)])
def test_options_that_cannot_work_are_refused_where_they_are_written(
    declare: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        declare(Secret, **options)
    declare(Secret, project=SecretType)


def test_a_partial_cache_needs_no_other_permissions() -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    def needed(**options: Any) -> set[str]:
        controller = Controller(ConfigMap, reconcile, watches=[Watches(Secret, requests=trigger, **options)])
        return {each.verb for each in permissions([controller]) if each.resource == "secrets"}

    assert needed(metadata_only=True) == needed() == {"get", "list", "watch"}
