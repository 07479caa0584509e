"""`ctx.apply` writes what it owns, and leaves the objects of others alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import Client, Conflict, MergePatch, NotFound, Recording
from konverge.client.call import Call, Caller
from konverge.client.wrappers import Wrapper
from konverge.objects import CustomResource, Model, crd
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta, OwnerReference
from konverge.runtime import Context, Controller, Manager, NotOwned, Owns, Settings, Use, Watches
from konverge.runtime.owners import controller_of
from konverge.wire.message import Response
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle
from tests.runtime.test_retries import Recorded

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-22")]

ADOPT = "konverge.dev/adopt-by"


class Applying:
    """A reconciler that applies a ConfigMap of the same name, and notes how that ended."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.refusals: list[str] = []
        self.written: list[bool] = []
        self.conflicts = 0

    async def __call__(self, ctx: Context[Secret]) -> None:
        try:
            self.written.append(await ctx.apply(config_map(ctx.request.name, a="ours"), **self.options))
        except NotOwned as refused:
            self.refusals.append(str(refused))
            raise
        except Conflict:
            self.conflicts += 1
            raise


def others(name: str, *, controller: str = "") -> ConfigMap:
    """A ConfigMap of another author, with a controller or without."""
    made = config_map(name, a="theirs")
    if controller:
        reference = OwnerReference(
            api_version="apps/v1", kind="Deployment", name=controller, uid=f"uid-of-{controller}", controller=True
        )
        made.metadata.owner_references = [reference]
    return made


def adoptable_by(who: str) -> ConfigMap:
    made = others("a")
    made.metadata.annotations = {ADOPT: who}
    return made


CACHED = {"owns": [ConfigMap]}
SELECTED = {"watches": [Watches(ConfigMap, requests=lambda _: [], label_selector="mine")]}
ELSEWHERE = {"watches": [Watches(ConfigMap, requests=lambda _: [], namespaces=("kube-system",))]}
UNCACHED = {"uses": [Use(ConfigMap, "apply", "delete")]}
every_cache = pytest.mark.parametrize(
    "declared", [CACHED, SELECTED, ELSEWHERE, UNCACHED], ids=["cached", "selected", "elsewhere", "uncached"]
)


async def run(client: Client, reconcile: Applying, declared: dict[str, Any]) -> tuple[Recorded, list[str]]:
    """Run the controller for a moment. Returns the events, and the writes by verb (but for the review of rights)."""
    recorded, recording = Recorded(), Recording(client)
    controller: Controller[Secret] = Controller(Secret, reconcile, **declared)
    async with Manager(recording, recorder=recorded).add(controller).running():
        await settle()
    return recorded, [call.verb for call in recording.writes if call.verb != "create"]


@every_cache
@pytest.mark.parametrize("adopt", [False, True], ids=["", "adopt"])
async def test_an_object_with_another_controller_is_never_written(
    client: Client, declared: dict[str, Any], adopt: bool
) -> None:
    await client.create(secret("a"))
    made = others("a", controller="web")
    made.metadata.annotations = {ADOPT: "Secret/a"}  # handed over, though it has a controller
    before = await client.create(made)
    reconcile = Applying(adopt=adopt)
    recorded, writes = await run(client, reconcile, declared)
    assert await client.get(ConfigMap, "a", SPACE) == before
    assert not writes
    assert len(reconcile.refusals) == 1
    assert "ConfigMap a exists and is controlled by Deployment web" in reconcile.refusals[0]
    assert "delete or rename it" in reconcile.refusals[0]
    assert [(name, reason) for name, reason, _ in recorded.events] == [("a", "NotOwned")]
    assert recorded.events[0][2].startswith(reconcile.refusals[0])


@every_cache
@pytest.mark.parametrize("handed_to", ["", "Secret/b", "Pod/a", "a"])
async def test_an_object_without_a_controller_is_not_taken(
    client: Client, declared: dict[str, Any], handed_to: str
) -> None:
    await client.create(secret("a"))
    before = await client.create(adoptable_by(handed_to) if handed_to else others("a"))
    reconcile = Applying()
    _, writes = await run(client, reconcile, declared)
    assert await client.get(ConfigMap, "a", SPACE) == before
    assert not writes
    assert "ConfigMap a exists and has no controller" in reconcile.refusals[0]
    assert f"{ADOPT}: Secret/a" in reconcile.refusals[0]


@every_cache
@pytest.mark.parametrize("way", ["annotation", "argument"])
async def test_an_object_without_a_controller_is_adopted_on_request(
    client: Client, declared: dict[str, Any], way: str
) -> None:
    owner = await client.create(secret("a"))
    before = await client.create(adoptable_by("Secret/a") if way == "annotation" else others("a"))
    reconcile = Applying(adopt=way == "argument")
    await run(client, reconcile, declared)
    after = await client.get(ConfigMap, "a", SPACE)
    controller = controller_of(after)
    assert controller is not None
    assert (controller.uid, after.metadata.uid) == (owner.metadata.uid, before.metadata.uid)
    assert after.data == {"a": "ours"}


@every_cache
async def test_what_is_ours_is_made_and_kept(client: Client, declared: dict[str, Any]) -> None:
    owner = await client.create(secret("a"))
    reconcile = Applying()
    controller: Controller[Secret] = Controller(Secret, reconcile, **declared)
    async with Manager(client).add(controller).running():
        await settle()
        made = await client.get(ConfigMap, "a", SPACE)
        await client.patch(ConfigMap, "a", MergePatch({"data": {"a": "drifted"}}), SPACE)
        await client.patch(Secret, "a", MergePatch({"stringData": {"poke": "1"}}), SPACE)
        await settle()
        await client.patch(Secret, "a", MergePatch({"stringData": {"poke": "2"}}), SPACE)
        await settle()
    kept = await client.get(ConfigMap, "a", SPACE)
    controller = controller_of(kept)
    assert controller is not None
    assert controller.uid == owner.metadata.uid
    assert kept.metadata.uid == made.metadata.uid
    assert kept.data == {"a": "ours"}
    assert reconcile.written.count(True) == 2  # it was made and it was repaired; the last time there was nothing to do
    assert reconcile.written[-1] is False


@every_cache
async def test_without_ownership_nothing_is_checked(client: Client, declared: dict[str, Any]) -> None:
    await client.create(secret("a"))
    before = await client.create(others("a", controller="web"))
    await run(client, Applying(own=False), declared)
    after = await client.get(ConfigMap, "a", SPACE)
    assert after.data == {"a": "ours"}
    assert after.metadata.owner_references == before.metadata.owner_references


async def test_a_clash_is_one_event_and_heals_when_the_other_object_is_gone(client: Client) -> None:
    await client.create(secret("a"))
    await client.create(others("a"))
    reconcile, recorded = Applying(), Recorded()
    controller = Controller(Secret, reconcile, owns=[ConfigMap])
    async with Manager(client, recorder=recorded).add(controller).running():
        await settle(3600)
        assert recorded.reasons == ["NotOwned"]
        assert 50 <= len(reconcile.refusals) <= 70
        await client.delete(ConfigMap, "a", SPACE)
        await settle(70)
        assert (await client.get(ConfigMap, "a", SPACE)).data == {"a": "ours"}
        await client.delete(ConfigMap, "a", SPACE)
        await client.create(others("a"))  # a second clash
        await client.patch(Secret, "a", MergePatch({"stringData": {"poke": "1"}}), SPACE)
        await settle(200)
    assert recorded.reasons == ["NotOwned", "NotOwned"]


async def test_the_objects_of_an_earlier_owner_are_left_to_the_garbage_collector(client: Client) -> None:
    earlier = await client.create(secret("a"))
    old = config_map("a", a="old")
    old.metadata.owner_references = [
        OwnerReference(api_version="v1", kind="Secret", name="a", uid=earlier.metadata.uid, controller=True)
    ]
    await client.create(old)
    await client.delete(Secret, "a", SPACE)
    await client.create(secret("a"))
    reconcile = Applying()
    async with Manager(client).add(Controller(Secret, reconcile, owns=[ConfigMap])).running():
        await settle()
        assert (await client.get(ConfigMap, "a", SPACE)).data == {"a": "old"}
        assert "controlled by an earlier Secret a" in reconcile.refusals[0]
        await client.delete(ConfigMap, "a", SPACE)
        await settle()
        assert (await client.get(ConfigMap, "a", SPACE)).data == {"a": "ours"}


class Between(Wrapper):
    """Does something right before a write of a ConfigMap reaches the server."""

    def __init__(self, inner: Caller) -> None:
        super().__init__(inner)
        self.actions: list[Callable[[], Awaitable[None]]] = []

    async def call(self, call: Call) -> Response:
        if self.actions and call.writes and call.resource is not None and call.resource.kind == "ConfigMap":
            await self.actions.pop(0)()
        return await super().call(call)


def between_writes(client: Client) -> tuple[Between, Client]:
    between = Between(client.caller)
    wrapped = Client.__new__(Client)
    wrapped._use_caller(between, client.mapper)
    return between, wrapped


@pytest.mark.parametrize("successor", [True, False], ids=["replaced", "deleted"])
async def test_an_object_that_is_replaced_in_between_is_not_taken_over(client: Client, successor: bool) -> None:
    """The cache shows ours; when the apply arrives, a stranger's object has its name, or none."""
    await client.create(secret("a"))
    between, disturbed = between_writes(client)
    reconcile, recorded = Applying(), Recorded()
    controller = Controller(Secret, reconcile, owns=[ConfigMap], settings=Settings(base_delay=0.1))
    async with Manager(disturbed, recorder=recorded).add(controller).running():
        await settle()

        async def replace() -> None:
            await client.delete(ConfigMap, "a", SPACE)
            if successor:
                await client.create(others("a"))

        between.actions = [replace]
        await client.patch(ConfigMap, "a", MergePatch({"data": {"a": "drifted"}}), SPACE)
        await settle()
        assert not between.actions
        now = await client.get(ConfigMap, "a", SPACE)
    assert reconcile.conflicts == 1
    assert now.data == {"a": "theirs" if successor else "ours"}
    assert (controller_of(now) is None) is successor
    assert recorded.reasons == (["NotOwned"] if successor else [])


async def test_an_object_that_appears_in_between_is_not_taken_over(client: Client) -> None:
    await client.create(secret("a"))
    between, disturbed = between_writes(client)

    async def appear() -> None:
        await client.create(others("a"))

    between.actions = [appear]
    async with Manager(disturbed).add(Controller(Secret, Applying(), owns=[ConfigMap])).running():
        await settle()
    now = await client.get(ConfigMap, "a", SPACE)
    assert now.data == {"a": "theirs"}
    assert controller_of(now) is None


async def test_only_the_object_that_the_cache_showed_is_deleted(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        if not answers:
            answers.append("")
            answers[0] = str(await ctx.delete(ConfigMap, "a"))

    async def replace() -> None:
        await client.delete(ConfigMap, "a", SPACE)
        await client.create(others("a"))

    answers: list[str] = []
    await client.create(config_map("a"))
    between, disturbed = between_writes(client)
    between.actions = [replace]
    async with Manager(disturbed).add(Controller(Secret, reconcile, uses=[Use(ConfigMap, cached=True)])).running():
        await client.create(secret("a"))
        await settle()
    assert answers == [""]  # a Conflict
    assert (await client.get(ConfigMap, "a", SPACE)).data == {"a": "theirs"}


async def test_an_object_without_a_successor_is_deleted(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        answers.append(await ctx.delete(ConfigMap, "a"))

    answers: list[bool] = []
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=SPACE)))
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, reconcile, uses=[Use(ConfigMap, "delete")])).running():
        await settle()
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a", SPACE)
        await client.patch(Secret, "a", MergePatch({"stringData": {"poke": "1"}}), SPACE)
        await settle()
    assert answers == [True, False]


class Bulb(Model):
    watts: int = 0


class Lamp(CustomResource[Bulb, Bulb], group="tests.konverge.dev", version="v1"):
    """A kind that a cluster may not have."""


async def test_a_cache_that_does_not_know_the_kind_yet_does_not_say_that_an_object_is_absent(client: Client) -> None:
    """The definition is installed after the start: the cache is empty for a while, and a stranger's object is there."""

    async def reconcile(ctx: Context[Secret]) -> None:
        if ctx.obj.metadata.annotations:
            try:
                await ctx.apply(Lamp(metadata=ObjectMeta(name="a", labels={"by": "us"}), spec=Bulb()))
            except NotOwned as refused:
                served.append(ctx.serves(Lamp))
                refusals.append(str(refused))

    served: list[bool] = []
    refusals: list[str] = []
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, reconcile, owns=[Owns(Lamp, optional=True)])).running():
        await settle(60)
        await client.create(crd(Lamp))
        await settle(0.5)
        before = await client.create(Lamp(metadata=ObjectMeta(name="a", namespace=SPACE), spec=Bulb()))
        await client.patch(Secret, "a", MergePatch({"metadata": {"annotations": {"go": "on"}}}), SPACE)
        await settle(0.1)
        assert served == [False]  # the cache has not noticed yet
        assert "Lamp a exists and has no controller" in refusals[0]
        assert await client.get(Lamp, "a", SPACE) == before
