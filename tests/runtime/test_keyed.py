"""Requests that are not objects: queue, retries, read-your-writes and echoes are those of any request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pytest

from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Caches, Context, Controller, Manager, Reconciler, Request, Result, Settings, Source
from konverge.runtime.key_context import KeyContext
from konverge.runtime.keys import check_key_type
from konverge.runtime.manager import LeaderElection
from konverge.runtime.relations import Use, Watches
from tests.runtime.objects import SPACE, config_map, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-61")]


class Pair(msgspec.Struct, frozen=True):
    """A node and a Secret."""

    node: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Tenant:
    name: str


class Place(NamedTuple):
    room: int


def pairs_of_secret(obj: Secret, caches: Caches) -> list[Pair]:
    nodes = caches.lister(Node)
    assert nodes is not None
    return [Pair(node.metadata.name, obj.metadata.namespace, obj.metadata.name) for node in nodes.list()]


def pairs_of_node(obj: Node, caches: Caches) -> list[Pair]:
    secrets = caches.lister(Secret)
    assert secrets is not None
    return [Pair(obj.metadata.name, s.metadata.namespace, s.metadata.name) for s in secrets.list()]


def controller(function: Any, **options: Any) -> Controller[Secret]:
    watches = [Watches(Secret, lookup=pairs_of_secret), Watches(Node, lookup=pairs_of_node)]
    uses = [Use(ConfigMap, "get", "list", "watch", "create", "patch")]
    return Controller(Secret, function, key=Pair, watches=watches, uses=uses, **options)


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


class Pairs:
    """Writes a ConfigMap for each pair."""

    def __init__(self, *errors: Exception) -> None:
        self.requests: list[Pair] = []
        self.running: set[Pair] = set()
        self.reasons: list[str] = []
        self.errors = list(errors)

    async def __call__(self, ctx: KeyContext[Pair]) -> Result | None:
        request = ctx.request
        assert request not in self.running
        self.running.add(request)
        try:
            self.requests.append(request)
            self.reasons += [str(reason) for reason in ctx.reasons]
            owner = await ctx.get(Secret, request.name)
            if owner is None or await ctx.get(Node, request.node) is None:
                return None
            if self.errors:
                raise self.errors.pop(0)
            await ctx.apply(config_map(f"{request.node}-{request.name}", **(owner.metadata.labels or {})), owner=owner)
            await asyncio.sleep(0.5)
            return None
        finally:
            self.running.discard(request)


async def names(client: Client) -> set[str]:
    return {item.metadata.name for item in await client.list(ConfigMap, SPACE)} - {"kube-root-ca.crt"}


async def test_one_request_for_each_pair(client: Client) -> None:
    pairs = Pairs()
    await client.create(node("n1"))
    await client.create(secret("s1"))
    async with Manager(client).add(controller(pairs)).running() as manager:
        await asyncio.sleep(2)
        assert await names(client) == {"n1-s1"}
        await client.create(node("n2"))
        await client.create(secret("s2"))
        await asyncio.sleep(2)
        assert await names(client) == {"n1-s1", "n1-s2", "n2-s1", "n2-s2"}
        pairs.requests.clear()
        await client.patch(Secret, "s2", MergePatch({"metadata": {"labels": {"colour": "red"}}}), SPACE)
        await asyncio.sleep(2)
        assert sorted(pair.node for pair in pairs.requests) == ["n1", "n2"], "no other pair, and no echo of its writes"
        assert (await client.get(ConfigMap, "n2-s2", SPACE)).data == {"colour": "red"}
        assert "Secret default/s2 updated: metadata.labels" in pairs.reasons[-1]
        assert manager.engines["secret"].numbers.results["success"] >= 6


async def test_its_own_writes_are_seen_and_lead_to_nothing(client: Client) -> None:
    counts: list[int] = []

    async def count(ctx: KeyContext[Tenant]) -> Result:
        present = await ctx.get(ConfigMap, "count", SPACE)
        counts.append(int(present.data["n"]) if present else 0)
        data = config_map("count", n=str(counts[-1] + 1))
        await ctx.apply(data)
        return Result(requeue_after=0.001) if len(counts) < 20 else Result()

    watches = [Watches(ConfigMap, requests=lambda obj: [Tenant("a")] if obj.metadata.name == "count" else [])]
    made = Controller(ConfigMap, count, key=Tenant, watches=watches, uses=[Use(ConfigMap, "apply")])
    await client.create(config_map("count", n="0"))
    async with Manager(client).add(made).running():
        await asyncio.sleep(5)
    assert counts == list(range(20)), "never an older state than its last write, and no reconcile for its echo"


async def test_a_failed_request_is_retried_alone(client: Client) -> None:
    pairs = Pairs(ValueError("defect"), OSError("away"))
    for name in ("n1", "n2"):
        await client.create(node(name))
    await client.create(secret("s"))
    async with Manager(client).add(controller(pairs)).running() as manager:
        await asyncio.sleep(10)
        assert await names(client) == {"n1-s", "n2-s"}
        assert manager.engines["secret"].numbers.errors == 2
    assert len(pairs.requests) == 4


async def test_sources_and_resyncs_lead_to_requests(client: Client) -> None:
    seen: list[Place] = []

    async def note(ctx: KeyContext[Place]) -> None:
        seen.append(ctx.request)

    async def pushes() -> AsyncIterator[Place]:
        yield Place(7)
        await asyncio.Event().wait()

    watches = [Watches(Secret, requests=lambda obj: [Place(len(obj.metadata.name))])]
    source = Source(name="pushes", requests=pushes)
    made = Controller(Secret, note, key=Place, watches=watches, sources=[source], settings=Settings(resync_period=100))
    await client.create(secret("abc"))
    async with Manager(client).add(made).running():
        await asyncio.sleep(50)
        assert sorted(seen) == [Place(3), Place(7)]
        await asyncio.sleep(70)
        assert sorted(seen) == [Place(3), Place(3), Place(7)]


async def test_who_takes_over_has_all_requests(client: Client) -> None:
    first, second = Pairs(), Pairs()
    election = LeaderElection(name="pairs", namespace=SPACE)
    await client.create(node("n"))
    await client.create(secret("s"))
    stop = asyncio.Event()
    async with Manager(client, leader_election=election).add(controller(first)).running():
        standing_by = asyncio.create_task(Manager(client, leader_election=election).add(controller(second)).serve(stop))
        await asyncio.sleep(5)
        assert first.requests
        assert not second.requests
    await asyncio.sleep(30)
    assert second.requests == [Pair("n", SPACE, "s")]
    stop.set()
    await standing_by


async def test_a_request_of_another_type_costs_its_object_alone(client: Client) -> None:
    seen: list[Tenant] = []

    async def note(ctx: KeyContext[Tenant]) -> None:
        seen.append(ctx.request)

    def requests(obj: Secret) -> list[Any]:
        return [Tenant(obj.metadata.name) if obj.metadata.name != "bad" else "text"]

    made = Controller(Secret, note, key=Tenant, watches=[Watches(Secret, requests=requests)])
    for name in ("bad", "good"):
        await client.create(secret(name))
    manager = Manager(client).add(made)
    async with manager.running():
        await asyncio.sleep(1)
        assert "'text' is not a Tenant" in manager.health.remarks["quarantine"]()
    assert seen == [Tenant("good")]


def test_a_key_has_to_stay_what_it_is() -> None:
    class Loose(msgspec.Struct):
        name: str

    @dataclass
    class Open:
        name: str

    async def function(ctx: KeyContext[Any]) -> None: ...

    async def of_objects(ctx: Context[Secret]) -> None: ...

    watches = [Watches(Secret, requests=lambda obj: [])]
    for loose in (Loose, Open, dict, str):
        with pytest.raises(TypeError, match="frozen"):
            Controller(Secret, function, key=loose, watches=watches)
    with pytest.raises(ValueError, match="nothing leads to a request"):
        Controller(Secret, function, key=Tenant)
    with pytest.raises(TypeError, match="requests=lambda secret"):
        Controller(Secret, function, key=Tenant, watches=[Secret])
    with pytest.raises(TypeError, match="KeyContext"):
        Controller(Secret, function, key=Tenant, watches=watches, owns=[ConfigMap])
    with pytest.raises(TypeError, match="KeyContext"):
        Controller(Secret, Reconciler[Secret](), key=Tenant, watches=watches)


async def test_a_key_with_a_list_is_no_request(client: Client) -> None:
    class Many(msgspec.Struct, frozen=True):
        names: list[str]

    async def function(ctx: KeyContext[Many]) -> None: ...

    made = Controller(Secret, function, key=Many, watches=[Watches(Secret, requests=lambda obj: [Many(["a"])])])
    await client.create(secret("a"))
    manager = Manager(client).add(made)
    async with manager.running():
        await asyncio.sleep(1)
        assert "use tuples in place of lists" in manager.health.remarks["quarantine"]()


def test_keys_are_compared_by_value_and_cannot_change() -> None:
    class Frozen(msgspec.Struct, frozen=True):
        name: str

    class ByIdentity(msgspec.Struct, frozen=True, eq=False):
        name: str

    class Changing(msgspec.Struct):
        name: str

    @dataclass(frozen=True, eq=False)
    class SameOnly:
        name: str

    @dataclass
    class Open:
        name: str

    class Named(NamedTuple):
        name: str

    for good in (Request, Frozen, Tenant, Pair, Place, Named):
        check_key_type(good, "mine")

    class LooksNamed:
        _fields = ("name",)

    for bad in (ByIdentity, Changing, SameOnly, Open, LooksNamed, tuple, str):
        with pytest.raises(TypeError, match=f"key={bad.__name__} of the controller mine can be changed"):
            check_key_type(bad, "mine")
    not_a_class: Any = tuple[str, ...]
    with pytest.raises(TypeError, match="`class tuple\\("):
        check_key_type(not_a_class, "mine")
    with pytest.raises(TypeError, match=r"key=7 of .* `class MyKey\("):
        check_key_type(7, "mine")  # type: ignore[arg-type]
