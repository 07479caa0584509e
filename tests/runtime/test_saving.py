"""Writing one's own object: status and metadata, beside other writers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import Client, Conflict, MergePatch, Recording
from konverge.objects import Condition, CustomResource, ListType, Model, crd
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Reconciler, Result, set_condition
from konverge.runtime.context import STATUS_ATTEMPTS
from konverge.runtime.status_merge import changes_on, keys_of
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.spec("R-24")]


class Port(Model):
    port: int
    state: str = ""


class ThingSpec(Model):
    size: int = 0


class ThingStatus(Model):
    phase: str = ""
    count: int = 0
    conditions: Annotated[list[Condition], ListType("map", "type")] = []
    ports: Annotated[list[Port], ListType("map", "port")] = []
    names: list[str] = []


class Thing(CustomResource[ThingSpec, ThingStatus], group="test.example.com", version="v1"):
    """Something with a status that several controllers write."""


async def install(client: Client) -> None:
    await client.create(crd(Thing))
    await settle(2)


def thing(name: str = "a") -> Thing:
    return Thing(metadata=ObjectMeta(name=name, namespace=SPACE), spec=ThingSpec())


async def reconcile_once(client: Client, reconcile: Callable[[Context[Thing]], Any]) -> list[Any]:
    """What a function returns, called in the first reconcile of a new object; and its error, if it raised one."""
    answers: list[Any] = []

    async def once(ctx: Context[Thing]) -> None:
        if not answers:
            try:
                answers.append(await reconcile(ctx))
            except Conflict as error:
                answers.append(error)

    await install(client)
    async with Manager(client).add(Controller(Thing, once)).running():
        await client.create(thing())
        await settle()
    return answers


async def write_condition(client: Client, type: str, status: str = "True") -> None:
    """Another writer, with a field that the class of this test does not know."""
    live = await client.get("things.test.example.com", "a", SPACE)
    conditions = [c for c in live.get("status", {}).get("conditions", []) if c["type"] != type]
    now = "2026-01-01T00:00:00Z"
    conditions.append({"type": type, "status": status, "reason": "R", "message": "", "lastTransitionTime": now})
    await client.patch(Thing, "a", MergePatch({"status": {"conditions": conditions}}), SPACE, subresource="status")


def types(obj: Thing) -> list[str]:
    return sorted(condition.type for condition in obj.status.conditions)


@pytest.mark.virtual
async def test_the_condition_of_another_writer_stays(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> bool:
        await write_condition(client, "Theirs")
        set_condition(ctx.obj.status.conditions, "Ours", True, "Good")
        ctx.obj.status.phase = "Up"
        return await ctx.save_status()

    assert await reconcile_once(client, reconcile) == [True]
    live = await client.get(Thing, "a", SPACE)
    assert (types(live), live.status.phase) == (["Ours", "Theirs"], "Up")


@pytest.mark.virtual
async def test_a_second_save_takes_nothing_of_others_away(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> list[bool]:
        status = ctx.obj.status
        set_condition(status.conditions, "Ours", True, "Good")
        await write_condition(client, "Theirs")
        saved = [await ctx.save_status(), await ctx.save_status()]
        await write_condition(client, "Later")
        set_condition(status.conditions, "More", True, "Good")
        saved.append(await ctx.save_status())
        status.conditions = [condition for condition in status.conditions if condition.type != "Ours"]
        saved.append(await ctx.save_status())
        return saved

    assert await reconcile_once(client, reconcile) == [[True, False, True, True]]
    assert types(await client.get(Thing, "a", SPACE)) == ["Later", "More", "Theirs"]


@pytest.mark.virtual
async def test_one_request_writes_a_status_and_none_an_unchanged_one(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> list[bool]:
        recording.calls.clear()
        saved = [await ctx.save_status()]
        set_condition(ctx.obj.status.conditions, "Ours", True, "Good")
        return [*saved, await ctx.save_status(), await ctx.save_status()]

    recording = Recording(client)
    assert await reconcile_once(recording, reconcile) == [[False, True, False]]
    assert [(call.verb, call.subresource) for call in recording.calls if call.verb != "watch"] == [("patch", "status")]


@pytest.mark.virtual
async def test_the_status_of_a_replaced_object_is_not_written_on_its_successor(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> bool:
        await client.delete(Thing, "a", SPACE)
        await client.create(thing())
        ctx.obj.status.phase = "Old"
        return await ctx.save_status()

    assert await reconcile_once(client, reconcile) == [False]
    assert (await client.get(Thing, "a", SPACE)).status.phase == ""


class Contested(Recording):
    """A client before whose every status write another writer is faster."""

    def __init__(self, client: Client, times: int) -> None:
        super().__init__(client)
        self.times, self.lost = times, 0
        inner = self.caller

        class Calls:
            near = inner.near
            stream = inner.stream

            async def call(_self, call: Any) -> Any:  # noqa: N805 - it closes over the client
                if call.subresource == "status" and self.lost < self.times:
                    self.lost += 1
                    await write_condition(client, f"Theirs{self.lost}")
                return await inner.call(call)

        self._use_caller(Calls(), client.mapper)


@pytest.mark.virtual
@pytest.mark.parametrize("times", [1, STATUS_ATTEMPTS - 1, STATUS_ATTEMPTS])
async def test_a_conflict_is_retried_some_times(client: Client, times: int) -> None:
    async def reconcile(ctx: Context[Thing]) -> bool:
        set_condition(ctx.obj.status.conditions, "Ours", True, "Good")
        return await ctx.save_status()

    (answer,) = await reconcile_once(Contested(client, times), reconcile)
    lost = times == STATUS_ATTEMPTS
    assert isinstance(answer, Conflict) if lost else answer is True
    theirs = [f"Theirs{number}" for number in range(1, times + 1)]
    assert types(await client.get(Thing, "a", SPACE)) == (theirs if lost else ["Ours", *theirs])


@pytest.mark.virtual
async def test_two_controllers_that_set_conditions_of_one_object_lose_none(client: Client) -> None:
    """Each counts up a condition of its own, as fast as it can; what one wrote last is there at the end."""

    class Counting(Reconciler[Thing]):
        def __init__(self, type: str) -> None:
            self.type, self.count = type, 0

        async def reconcile(self, ctx: Context[Thing]) -> Result | None:
            self.count += 1
            set_condition(ctx.obj.status.conditions, self.type, True, "Count", str(self.count))
            ctx.obj.status.ports.append(Port(port=self.count * 10 + ord(self.type[0])))
            await asyncio.sleep(0)
            await ctx.save_status()
            return Result(requeue_after=0.01) if self.count < 20 else None

    await install(client)
    manager, counters = Manager(client), [Counting(name) for name in ("A", "B", "C")]
    for counter in counters:
        manager.add(Controller(Thing, counter.reconcile, name=counter.type.lower(), when=lambda old, new: old is None))
    async with manager.running():
        await client.create(thing())
        await settle(60)
    live = await client.get(Thing, "a", SPACE)
    assert {c.type: c.message for c in live.status.conditions} == {c.type: str(c.count) for c in counters}
    assert min(counter.count for counter in counters) >= 20
    assert len(live.status.ports) == 60


# ------------------------------------------------------------------ metadata


@pytest.mark.virtual
async def test_metadata_is_guarded_by_the_version_that_was_read(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> bool:
        await client.patch(Thing, "a", MergePatch({"metadata": {"finalizers": ["theirs/x"]}}), SPACE)
        ctx.obj.metadata.finalizers.append("ours/x")
        return await ctx.save_metadata()

    (answer,) = await reconcile_once(client, reconcile)
    assert isinstance(answer, Conflict)
    assert (await client.get(Thing, "a", SPACE)).metadata.finalizers == ["theirs/x"]


@pytest.mark.virtual
async def test_metadata_of_others_is_not_reverted_after_a_status_that_was_read_again(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> bool:
        labels = {"theirs": "1"}
        await client.patch(Thing, "a", MergePatch({"metadata": {"labels": labels, "finalizers": ["theirs/x"]}}), SPACE)
        ctx.obj.status.phase = "Up"
        assert await ctx.save_status()
        ctx.obj.metadata.finalizers.append("ours/x")
        return await ctx.save_metadata()

    (answer,) = await reconcile_once(client, reconcile)
    assert isinstance(answer, Conflict)
    live = await client.get(Thing, "a", SPACE)
    assert (live.metadata.labels, live.metadata.finalizers) == ({"theirs": "1"}, ["theirs/x"])
    assert live.status.phase == "Up"


@pytest.mark.virtual
async def test_status_and_metadata_are_saved_one_after_the_other(client: Client) -> None:
    async def reconcile(ctx: Context[Thing]) -> list[bool]:
        saved = []
        for number in ("1", "2"):
            ctx.obj.status.phase = number
            saved.append(await ctx.save_status())
            ctx.obj.metadata.labels[number] = number
            ctx.obj.metadata.annotations["a"] = number
            saved.append(await ctx.save_metadata())
        return [*saved, await ctx.save_metadata()]

    assert await reconcile_once(client, reconcile) == [[True, True, True, True, False]]
    live = await client.get(Thing, "a", SPACE)
    assert (live.status.phase, live.metadata.labels) == ("2", {"1": "1", "2": "2"})
    assert live.metadata.annotations == {"a": "2"}


# ------------------------------------------------------------------ the merge itself


def test_the_keys_of_a_class() -> None:
    assert keys_of(ThingStatus) == {"conditions": ("type",), "ports": ("port",)}

    class Deep(Model):
        inner: ThingStatus | None = None
        more: list[ThingStatus] = []

    assert keys_of(Deep) == {"inner.conditions": ("type",), "inner.ports": ("port",)}
    assert keys_of(dict) == {}


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


entries = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["True", "False"])).map(
    lambda statuses: [{"type": type, "status": status} for type, status in statuses.items()]
)


@pytest.mark.hypothesis
@given(entries, entries, entries)
def test_every_writer_gets_its_changes_and_keeps_those_of_others(
    before: list[Any], ours: list[Any], theirs: list[Any]
) -> None:
    """Where only one of two writers changed a condition, its change holds; where both did, ours does."""
    now = {"conditions": theirs, "other": 1}
    patch = changes_on({"conditions": before}, {"conditions": ours}, now, {})
    merged = {c["type"]: c["status"] for c in merge(now, patch)["conditions"]}
    base, mine, other = ({c["type"]: c["status"] for c in each} for each in (before, ours, theirs))
    for type in "abcd":
        changed = base.get(type) != mine.get(type)
        assert merged.get(type) == (mine if changed else other).get(type)


@pytest.mark.parametrize(
    ("before", "wanted", "now", "changes"),
    [
        ({"a": 1}, {"a": 1}, {"a": 2}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}, {}),
        ({"a": 1}, {}, {}, {}),
        ({"a": 1}, {}, {"a": 1, "b": 2}, {"a": None}),
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}),
        ({}, {"a": 0}, {}, {"a": 0}),
        ({"m": {"x": 1}}, {"m": {"x": 2}}, {"m": {"x": 1, "y": 3}}, {"m": {"x": 2}}),
        ({"m": {"x": 1}}, {"m": {"x": 2}}, {}, {"m": {"x": 2}}),
        ({"m": {"x": 1}}, {"m": {}}, {"m": {"x": 1}}, {"m": {"x": None}}),
        ({"l": ["a"]}, {"l": ["b"]}, {"l": ["c"]}, {"l": ["b"]}),
        (
            {"l": [{"k": 1}]},
            {"l": [{"k": 1, "v": 2}]},
            {"l": [{"k": 3}, {"k": 1}]},
            {"l": [{"k": 1, "v": 2}, {"k": 3}]},
        ),
        (
            {"l": [{"k": 1}, {"k": 2}]},
            {"l": [{"k": 2}, {"k": 1}]},
            {"l": [{"k": 1}, {"k": 3}, {"k": 2}]},
            {"l": [{"k": 2}, {"k": 1}, {"k": 3}]},
        ),
        ({"l": [{"k": 1}]}, {"l": [{"k": 1}, {"k": 2}]}, {}, {"l": [{"k": 2}]}),
        ({"l": []}, {"l": [{"k": 1}]}, {"l": [{"k": 2}, {"k": 2}]}, {"l": [{"k": 1}]}),
        ({"l": []}, {"l": [{"k": 1}]}, {"l": [{"other": 2}]}, {"l": [{"k": 1}]}),
        # without declared keys, only a list of conditions has keys
        ({}, {"c": [{"type": "a"}]}, {"c": [{"type": "b", "status": "True"}]}, {"c": [{"type": "a"}]}),
        (
            {"c": [{"type": "a", "status": "True", "old": 1}]},
            {"c": [{"type": "a", "status": "False"}]},
            {"c": [{"type": "a", "status": "True", "old": 1, "unknown": 2}]},
            {"c": [{"type": "a", "status": "False", "unknown": 2}]},
        ),
    ],
)  # fmt: skip
def test_changes_on(before: Any, wanted: Any, now: Any, changes: Any) -> None:
    assert changes_on(before, wanted, now, {"l": ("k",)}) == changes


def test_a_list_that_is_declared_atomic_is_written_as_it_is_wanted() -> None:
    class Whole(Model):
        conditions: Annotated[list[Condition], ListType("atomic")] = []

    keys = keys_of(Whole)
    assert keys == {"conditions": ()}
    ours, theirs = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}
    assert changes_on({}, {"conditions": [ours]}, {"conditions": [theirs]}, keys) == {"conditions": [ours]}


@pytest.mark.virtual
async def test_a_status_that_goes_back_to_what_was_read_is_written(client: Client) -> None:
    written: list[bool] = []

    async def reconcile(ctx: Context[Thing]) -> None:
        if written:
            return
        for phase in ("Working", "", ""):
            ctx.obj.status.phase = phase
            written.append(await ctx.save_status())

    await client.create(crd(Thing))
    await asyncio.sleep(2)
    await client.create(thing())
    async with Manager(client).add(Controller(Thing, reconcile)).running():
        await asyncio.sleep(5)
        assert (await client.get(Thing, "a", SPACE)).status.phase == ""
    assert written == [True, True, False]
