"""Children as a set, on an embedded API server: what is written, what is deleted, and above all what is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from konverge.cache.record import Key
from konverge.client import Client, Conflict, Invalid, MergePatch, NotFound, Recording
from konverge.client.call import Call
from konverge.objects import CustomResource, Model
from konverge.objects.kinds.core_v1 import ConfigMap, Secret, Service
from konverge.objects.meta import ObjectMeta, OwnerReference
from konverge.runtime import Context, Controller, Manager, NotOwned, Owns, Use
from konverge.runtime.apply_set import Child, NotServed, SetResult, run
from konverge.runtime.apply_set.members import PART_OF, set_id
from konverge.runtime.owners import controller_reference
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle
from tests.runtime.test_retries import Recorded

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-62")]

assert run  # loaded before a loop runs
Children = Callable[[Context[Secret]], Any]


class Setting:
    """A reconciler that applies the children that the data of its Secret names, and notes how that ended."""

    def __init__(self, children: Children | None = None, **options: Any) -> None:
        self.children = children or (lambda ctx: [config_map(name, a="1") for name in named(ctx.obj)])
        self.options = options
        self.results: list[SetResult] = []
        self.errors: list[Exception] = []

    async def __call__(self, ctx: Context[Secret]) -> None:
        try:
            self.results.append(await ctx.apply_set(self.children(ctx), **self.options))
        except Exception as error:
            self.errors.append(error)
            raise

    @property
    def last(self) -> SetResult:
        return self.results[-1]


def named(obj: Secret) -> Sequence[str]:
    return sorted(obj.data or {})


def owner(*names: str) -> Secret:
    return secret("own", **dict.fromkeys(names, "x"))


async def desire(client: Client, *names: str) -> None:
    """From now on, these are desired."""
    present = (await client.get(Secret, "own", SPACE)).data or {}
    data = dict.fromkeys(present) | dict.fromkeys(names, "eA==")
    await client.patch(Secret, "own", MergePatch({"data": data}), SPACE)
    await settle()


def manager(client: Client, reconcile: Any, *owns: Any, **options: Any) -> Manager:
    declared = Controller(Secret, reconcile, owns=owns or [ConfigMap], **options)
    return Manager(client, recorder=Recorded()).add(declared)


async def maps(client: Client) -> list[str]:
    return sorted(item.metadata.name for item in (await client.list(ConfigMap, SPACE)).items)


def writes(recording: Recording) -> list[tuple[str, str]]:
    return [(call.verb, call.name) for call in recording.writes if call.verb != "create"]


async def test_all_are_applied_and_then_nothing_is_sent(client: Client) -> None:
    await client.create(owner("a", "b"))
    setting, recording = Setting(), Recording(client)
    async with manager(recording, setting).running():
        await settle()
        assert writes(recording) == [("patch", "a"), ("patch", "b")]
        assert [ref.name for ref in setting.last.written] == ["a", "b"]
        assert setting.last.ready
        assert setting.last.applied
        recording.calls.clear()
        await client.patch(Secret, "own", MergePatch({"metadata": {"labels": {"touched": "yes"}}}), SPACE)
        await settle()
        assert writes(recording) == []
        assert (setting.last.written, setting.last.message) == ((), "all children are ready")
    made = await client.get(ConfigMap, "a", SPACE)
    assert made.metadata.labels == {PART_OF: set_id(await client.get(Secret, "own", SPACE))}


@pytest.mark.spec("R-64")
async def test_what_is_no_longer_desired_is_deleted_as_it_was_seen(client: Client) -> None:
    await client.create(owner("a", "b"))
    setting, recording = Setting(), Recording(client)
    async with manager(recording, setting).running():
        await settle()
        seen = (await client.get(ConfigMap, "a", SPACE)).metadata
        recording.calls.clear()
        await desire(client, "b", "c")
        assert writes(recording) == [("patch", "c"), ("delete", "a")]
        body = json.loads(recording.writes[-1].body)
        assert body["propagationPolicy"] == "Background"
        assert body["preconditions"] == {"uid": seen.uid, "resourceVersion": seen.resource_version}
    assert await maps(client) == ["b", "c"]
    pruned = next(result for result in setting.results if result.deleted)
    assert [ref.name for ref in pruned.deleted] == ["a"]
    assert not pruned.ready
    assert pruned.message == "ConfigMap a is being deleted"
    assert setting.last.ready  # the event of the deletion led to another reconcile


@pytest.mark.spec("R-64")
async def test_nothing_else_is_ever_deleted(client: Client) -> None:
    """Others' objects with the label; children of plain `apply` and of another set; what we own but do not control."""
    await client.create(owner("a"))
    own = await client.get(Secret, "own", SPACE)
    label = {PART_OF: set_id(own)}
    for name, references in {
        "labelled": [],
        "others": [OwnerReference(api_version="v1", kind="Pod", name="p", uid="u", controller=True)],
        "shared": [
            OwnerReference(api_version="v1", kind="Pod", name="p", uid="u", controller=True),
            OwnerReference(api_version="v1", kind="Secret", name="own", uid=own.metadata.uid),
        ],
        "owned": [OwnerReference(api_version="v1", kind="Secret", name="own", uid=own.metadata.uid)],
    }.items():
        foreign = config_map(name)
        foreign.metadata.labels, foreign.metadata.owner_references = dict(label), references
        await client.create(foreign)
    unlabelled = config_map("unlabelled")
    unlabelled.metadata.owner_references = [controller_reference(own)]
    await client.create(unlabelled)

    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply(config_map("plain"))
        await ctx.apply_set([config_map("other-set")], name="other")
        await ctx.apply_set([config_map(name) for name in named(ctx.obj)])

    async with manager(client, reconcile).running():
        await settle()
        others = ["labelled", "other-set", "others", "owned", "plain", "shared", "unlabelled"]
        assert await maps(client) == ["a", *others]
        await desire(client)
        assert await maps(client) == others


@pytest.mark.spec("R-64")
async def test_a_set_of_an_earlier_owner_of_the_name_is_not_ours(client: Client) -> None:
    """The id of a set is that of a name: the uid of the controller decides."""
    await client.create(owner("a"))
    async with manager(client, Setting()).running():
        await settle()
    await client.delete(Secret, "own", SPACE)
    await client.create(owner())
    async with manager(client, Setting()).running():
        await settle()
    assert await maps(client) == ["a"]


async def test_an_object_of_another_owner_is_left_alone_and_nothing_is_deleted(client: Client) -> None:
    await client.create(owner("a", "old"))
    setting, recording = Setting(), Recording(client)
    async with manager(recording, setting).running():
        await settle()
        await client.create(config_map("b", a="theirs"))
        await desire(client, "a", "b", "c")
        await settle()
        assert isinstance(setting.errors[0], NotOwned)
        assert (await client.get(ConfigMap, "b", SPACE)).data == {"a": "theirs"}
        assert await maps(client) == ["a", "b", "c", "old"]  # `c` does not wait for `b`, and `old` stays
        await client.delete(ConfigMap, "b", SPACE)
        await settle(100)
    assert await maps(client) == ["a", "b", "c"]


async def test_a_child_that_is_refused_holds_up_those_after_it_and_all_deletions(client: Client) -> None:
    await client.create(owner("old"))
    bad = Service(metadata=ObjectMeta(name="bad"))  # a Service without ports

    def children(ctx: Context[Secret]) -> Any:
        if "old" in named(ctx.obj):
            return [config_map("old")]
        return [Child(config_map("after"), after=[bad]), bad, config_map("beside")]

    setting = Setting(children)
    async with manager(client, setting, ConfigMap, Service).running():
        await settle()
        await desire(client)
    assert isinstance(setting.errors[0], Invalid)
    assert await maps(client) == ["beside", "old"]


async def test_several_refusals_are_all_named_and_the_one_to_retry_is_raised(client: Client) -> None:
    await client.create(owner())
    await client.create(config_map("theirs"))
    bad = Service(metadata=ObjectMeta(name="bad"))
    setting = Setting(lambda ctx: [config_map("theirs"), bad])
    async with manager(client, setting, ConfigMap, Service).running():
        await settle()
    assert isinstance(setting.errors[0], Invalid)
    assert ["theirs exists" in note for note in setting.errors[0].__notes__] == [True]


@pytest.mark.spec("R-63")
async def test_a_child_waits_for_what_it_comes_after(client: Client) -> None:
    await client.create(owner())

    def children(ctx: Context[Secret]) -> Any:
        first, second = config_map("first", a="1"), config_map("second", a=str(len(named(ctx.obj))))
        return [Child(second, after=[first]), Child(first, ready=lambda obj: obj.data.get("ready") == "yes")]

    setting = Setting(children)
    async with manager(client, setting).running():
        await settle()
        assert await maps(client) == ["first"]
        assert [(entry.ref.name, entry.step, str(entry)) for entry in setting.last.waiting] == [
            ("first", "ready", "ConfigMap first is not ready"),
            ("second", "apply", "ConfigMap second waits for ConfigMap first, which is not ready"),
        ]
        assert not setting.last.applied
        assert not setting.last.ready
        await ready(client, "yes")
        assert await maps(client) == ["first", "second"]
        assert setting.last.ready
        # One that is as desired does not wait: there is nothing to write.
        await ready(client, "no")
        assert [entry.step for entry in setting.last.waiting] == ["ready"]
        assert setting.last.applied
        # A change of it does.
        await desire(client, "x")
        assert (await client.get(ConfigMap, "second", SPACE)).data == {"a": "0"}
        await ready(client, "yes")
        assert (await client.get(ConfigMap, "second", SPACE)).data == {"a": "1"}


async def ready(client: Client, value: str) -> None:
    await client.patch(ConfigMap, "first", MergePatch({"data": {"ready": value}}), SPACE)
    await settle()


@pytest.mark.spec("R-63", "R-64")
async def test_nothing_is_deleted_while_a_child_waits_to_be_applied(client: Client) -> None:
    await client.create(owner("old"))

    def children(ctx: Context[Secret]) -> Any:
        if "old" in named(ctx.obj):
            return [config_map("old")]
        first = config_map("first", a="1")
        return [Child(first, ready=lambda obj: obj.data.get("ready") == "yes"), Child(config_map("new"), after=[first])]

    async with manager(client, Setting(children)).running():
        await settle()
        await desire(client)
        assert await maps(client) == ["first", "old"]
        await ready(client, "yes")
    assert await maps(client) == ["first", "new"]


@pytest.mark.spec("R-64")
async def test_deletions_go_backwards_and_wait_until_each_is_gone(client: Client) -> None:
    await client.create(owner("yes"))

    def children(ctx: Context[Secret]) -> Any:
        return [[config_map("a")], [config_map("b")], [config_map("c")]] if named(ctx.obj) else []

    async def reconcile(ctx: Context[Secret]) -> None:
        results.append(await ctx.apply_set(stages=children(ctx)))

    results: list[SetResult] = []
    async with manager(client, reconcile).running():
        await settle()
        assert await maps(client) == ["a", "b", "c"]
        await desire(client)
        for left in (["a", "b", "c"], ["a", "b"]):
            assert await maps(client) == left
            before, gone = left[-2:]
            assert [name for name in left if await deleting(client, name)] == [gone]
            assert f"ConfigMap {before} is deleted when ConfigMap {gone} is gone" in results[-1].message
            assert f"ConfigMap {gone} is being deleted" in results[-1].message
            await collected(client, gone)
    assert await maps(client) == []  # the first of all need not be waited for
    assert results[-1].ready


async def deleting(client: Client, name: str) -> bool:
    return bool((await client.get(ConfigMap, name, SPACE)).metadata.deletion_timestamp)


async def collected(client: Client, name: str) -> None:
    """What the garbage collector does when the dependents of an object are gone."""
    await client.patch(ConfigMap, name, MergePatch({"metadata": {"finalizers": None}}), SPACE)
    await settle()


@pytest.mark.spec("R-64")
async def test_what_changed_since_it_was_seen_is_not_deleted(client: Client) -> None:
    """Another client takes the child over in the moment before our delete arrives."""
    await client.create(owner("a", "b"))

    setting, recording = Setting(), Recording(client)
    async with manager(recording, setting).running():
        await settle()
        inner, taken = recording.caller.call, False  # type: ignore[attr-defined]

        async def call(request: Call) -> Any:
            nonlocal taken
            if request.verb == "delete" and not taken:
                taken = True
                patch = {"metadata": {"ownerReferences": None, "labels": None}}
                await client.patch(ConfigMap, "a", MergePatch(patch), SPACE)
            return await inner(request)

        recording.caller.call = call  # type: ignore[method-assign]
        await desire(client)
        await settle(5)
    assert isinstance(setting.errors[0], Conflict)
    assert await maps(client) == ["a"]  # and `b`, which nothing happened to, was deleted all the same
    assert setting.last.ready  # it is not ours any more


async def test_kinds_that_are_not_declared_as_owned_are_refused_before_anything_is_written(client: Client) -> None:
    await client.create(owner())
    setting = Setting(lambda ctx: [config_map("a"), Service(metadata=ObjectMeta(name="s"))])
    async with manager(client, setting, uses=[Use(Service, cached=True)]).running():
        await settle()
    assert "declare it with owns=[Service]" in str(setting.errors[0])
    assert await maps(client) == []


class LampSpec(Model):
    pass


class Lamp(CustomResource[LampSpec, LampSpec], group="tests.konverge.dev", version="v1"):
    """A kind that the cluster does not serve."""


async def test_a_kind_that_is_not_served(client: Client) -> None:
    await client.create(owner("yes"))
    lamp = Lamp(metadata=ObjectMeta(name="l"), spec=LampSpec())

    def children(ctx: Context[Secret]) -> Any:
        return [Child(lamp, optional=bool(named(ctx.obj))), Child(config_map("a"), after=[lamp])]

    setting = Setting(children)
    async with manager(client, setting, ConfigMap, Owns(Lamp, optional=True)).running():
        await settle()
        assert [ref.kind for ref in setting.last.skipped] == ["Lamp"]
        assert await maps(client) == ["a"]
        assert setting.last.ready
        await desire(client)
        assert isinstance(setting.errors[-1], NotServed)
        assert "lamps.tests.konverge.dev in version v1" in str(setting.errors[-1])


@pytest.mark.spec("R-64")
async def test_nothing_is_deleted_on_the_word_of_a_cache_that_cannot_be_relied_on(client: Client) -> None:
    await client.create(owner("a"))
    setting = Setting()
    running = manager(client, setting, ConfigMap, Service)
    async with running.running() as started:
        await settle()
        services = next(i for i in started.caches.informers.values() if i.spec.resource == Service.resource)
        services.quarantine.report(Key(SPACE, "hidden"), 1, "u", "cannot be read", ValueError("broken"))
        await desire(client)
        assert await maps(client) == ["a"]
        assert "until the cache of services can be relied on" in setting.last.message
        assert not setting.last.applied
        services.quarantine.forget(Key(SPACE, "hidden"))
        services.synced.clear()
        await touch(client)
        assert await maps(client) == ["a"]
        assert "it has not been read yet" in setting.last.message
        services.synced.set()
        await touch(client)
        assert await maps(client) == []


async def touch(client: Client) -> None:
    version = (await client.get(Secret, "own", SPACE)).metadata.resource_version
    await client.patch(Secret, "own", MergePatch({"metadata": {"labels": {"touched": f"v{version}"}}}), SPACE)
    await settle()


async def test_one_set_twice_and_one_child_in_two_sets_are_mistakes(client: Client) -> None:
    await client.create(owner())
    errors: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply_set([config_map("a")])
        for children, name in (([config_map("b")], ""), ([config_map("a")], "other")):
            with pytest.raises(ValueError, match=r"twice in one reconcile|in two sets") as caught:
                await ctx.apply_set(children, name=name)
            errors.append(str(caught.value))
        await ctx.apply_set([config_map("c")], name="other")

    async with manager(client, reconcile).running():
        await settle()
    assert len(errors) == 2
    assert "name=" in errors[0]
    assert await maps(client) == ["a", "c"]


def without_annotations(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"].pop("annotations", None)
    return obj


KEPT = [
    Owns(ConfigMap, metadata_only=True),
    Owns(ConfigMap, transform=without_annotations),
    Owns(ConfigMap, every_owner=True),
    Owns(ConfigMap, label_selector=PART_OF),
]


@pytest.mark.spec("R-64")
@pytest.mark.parametrize("owns", KEPT, ids=["metadata", "transform", "every owner", "selected"])
async def test_caches_that_keep_less_prune_the_same_in_the_same_order(client: Client, owns: Any) -> None:
    await client.create(owner("yes"))

    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply_set(stages=[[config_map("a", k="1")], [config_map("b")]] if named(ctx.obj) else [])

    async with manager(client, reconcile, owns).running():
        await settle()
        assert await maps(client) == ["a", "b"]
        await desire(client)
        assert await maps(client) == ["a", "b"]
        assert await deleting(client, "b")
        assert not await deleting(client, "a")
        await collected(client, "b")
    assert await maps(client) == []


@pytest.mark.spec("R-63")
async def test_a_child_that_is_being_deleted_is_not_ready(client: Client) -> None:
    await client.create(owner())
    leaving = config_map("first")
    leaving.metadata.finalizers = ["tests.konverge.dev/hold"]

    def children(ctx: Context[Secret]) -> Any:
        first = config_map("first")
        return [Child(first, ready=lambda _: True, adopt=True), Child(config_map("second"), after=[first])]

    await client.create(leaving)
    await client.delete(ConfigMap, "first", SPACE)
    setting = Setting(children)
    async with manager(client, setting).running():
        await settle()
        assert await maps(client) == ["first"]
        assert "ConfigMap first is being deleted" in setting.last.message
        await collected(client, "first")
        assert await maps(client) == ["first", "second"]


@pytest.mark.spec("R-65")
async def test_a_dry_run_shows_what_waits_as_well(client: Client) -> None:
    await client.create(owner())
    first = config_map("first")
    children = [Child(first, ready=lambda _: False), Child(config_map("second"), after=[first])]
    setting = Setting(lambda ctx: children, dry_run=True)
    async with manager(client, setting).running():
        await settle()
    assert [ref.name for ref in setting.last.written] == ["first", "second"]
    assert "desired/ConfigMap/default/second" in setting.last.diff
    assert await maps(client) == []


@pytest.mark.spec("R-65")
async def test_a_dry_run_shows_everything_and_writes_nothing(client: Client) -> None:
    await client.create(owner("a", "b"))
    shown: list[SetResult] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        if "b" in named(ctx.obj):
            await ctx.apply_set([config_map("a", k="1"), config_map("b", k="1")])
            return
        children = [config_map("a", k="2"), config_map("c"), config_map("theirs"), secret("s", password="hush")]
        shown.append(await ctx.apply_set(children[:2] + children[3:], dry_run=True))
        shown.append(await ctx.apply_set(children, dry_run=True))

    await client.create(config_map("theirs"))
    recording = Recording(client)
    async with manager(recording, reconcile, ConfigMap, Secret).running():
        await settle()
        before = [item.metadata.resource_version for item in (await client.list(ConfigMap, SPACE)).items]
        await desire(client, "a")
    assert [item.metadata.resource_version for item in (await client.list(ConfigMap, SPACE)).items] == before
    with pytest.raises(NotFound):
        await client.get(Secret, "s", SPACE)
    text = shown[0].diff
    assert "-  k: '1'\n+  k: '2'" in text
    assert "+++ desired/ConfigMap/default/c" in text
    assert "--- live/ConfigMap/default/b\n+++ /dev/null" in text
    assert "hush" not in text
    assert "aHVzaA" not in text
    assert "+  password: '***'" in text
    assert [ref.name for ref in shown[0].written] == ["a", "c", "s"]
    assert [ref.name for ref in shown[0].deleted] == ["b"]
    assert "! ConfigMap theirs: ConfigMap theirs exists and has no controller" in shown[1].diff
    assert "/dev/null\n+++" in shown[1].diff
    assert "live/ConfigMap/default/b" not in shown[1].diff
