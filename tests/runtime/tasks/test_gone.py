"""`on_gone`: once at least for every object that disappears while the controller runs."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.record import Key, Record, receive
from konverge.cache.store import Change, ChangeType
from konverge.client import Client, MergePatch
from konverge.objects.codec import to_json
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Settings, TerminalError, Use
from konverge.runtime.manager import LeaderElection
from konverge.runtime.tasks.gone import STANDBY_MEMORY, Gone, GoneObjects, _metadata
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.tasks.network import Network

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-60")]


class Goners:
    """Notes what is gone and what is reconciled; the first calls fail as given."""

    def __init__(self, *errors: Exception) -> None:
        self.gone: list[str] = []
        self.log: list[str] = []
        self.errors = list(errors)

    async def on_gone(self, gone: Gone) -> None:
        self.log.append(f"gone {gone.request.name}")
        if self.errors:
            raise self.errors.pop(0)
        self.gone.append(gone.metadata.uid)

    async def reconcile(self, ctx: Context[Secret]) -> None:
        self.log.append(f"reconcile {ctx.request.name}")

    def controller(self, **options: Any) -> Controller[Secret]:
        return Controller(Secret, self.reconcile, on_gone=self.on_gone, **options)


async def test_it_is_called_with_the_last_metadata(client: Client) -> None:
    seen: list[tuple[str, str, dict[str, str], dict[str, str]]] = []

    async def on_gone(gone: Gone) -> None:
        left = await gone.get(ConfigMap, "left")
        seen.append((gone.request.name, gone.metadata.uid, gone.metadata.labels, left.data if left else {}))

    made = await client.create(secret("a"))
    await client.create(config_map("left", a="1"))
    async with Manager(client).add(Controller(Secret, on_gone=on_gone, uses=[Use(ConfigMap, cached=True)])).running():
        await client.patch(Secret, "a", MergePatch({"metadata": {"labels": {"colour": "red"}}}), SPACE)
        await asyncio.sleep(1)
        assert seen == []
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
    assert seen == [("a", made.metadata.uid, {"colour": "red"}, {"a": "1"})]


async def test_it_may_report_about_what_is_left_and_so_may_tasks(client: Client) -> None:
    async def on_gone(gone: Gone) -> None:
        gone.event("Left", "it has no Secret", about=left, type="Warning")
        gone.event("Seen", "it was seen", about=left)

    async def once(ctx: TaskContext) -> None:
        ctx.event("Old", "it is old", about=left, type="Warning")
        ctx.event("Counted", "it was counted", about=left)

    left = await client.create(config_map("left"))
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, on_gone=on_gone)).add_task(once).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(5)
    events = (await client.list(Event, SPACE)).items
    assert {(event.type, event.reason, event.message, event.involved_object.name) for event in events} == {
        ("Warning", "Left", "it has no Secret", "left"),
        ("Normal", "Seen", "it was seen", "left"),
        ("Warning", "Old", "it is old", "left"),
        ("Normal", "Counted", "it was counted", "left"),
    }


@pytest.mark.parametrize("forgetful", [0, 2])
async def test_what_disappeared_while_the_watch_was_cut_counts(
    server: ApiServer, client: Client, forgetful: int
) -> None:
    goners, network = Goners(), Network(server)
    kept, replaced, deleted = [await client.create(secret(name)) for name in ("kept", "replaced", "deleted")]
    async with Manager(network.client).add(goners.controller()).running():
        await asyncio.sleep(1)
        network.cut()
        for name in ("replaced", "deleted"):
            await client.delete(Secret, name, SPACE)
        await client.create(secret("replaced"))
        await client.create(secret("unseen"))
        await client.delete(Secret, "unseen", SPACE)
        await asyncio.sleep(30)
        assert goners.gone == []
        network.mend(forgetful=forgetful)
        await asyncio.sleep(120)
        assert {replaced.metadata.uid, deleted.metadata.uid} <= set(goners.gone)
        assert kept.metadata.uid not in goners.gone
        after = goners.log.index("gone replaced")
        assert "reconcile replaced" in goners.log[after:], "the new object waits for the end of the old one"


@pytest.mark.parametrize("error", [ValueError("defect"), OSError("away"), TerminalError("never")])
async def test_a_call_that_failed_is_made_again(client: Client, error: Exception) -> None:
    goners = Goners(error, error)
    made = await client.create(secret("a"))
    settings = Settings(max_delay=50.0)
    async with Manager(client).add(goners.controller(settings=settings)).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(300)
    assert goners.gone == [made.metadata.uid]
    assert goners.log.count("gone a") == 3


async def test_an_object_of_the_same_name_waits_until_the_call_has_succeeded(client: Client) -> None:
    goners = Goners(*[OSError("away")] * 3)
    await client.create(secret("a"))
    async with Manager(client).add(goners.controller()).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await client.create(secret("a"))
        await asyncio.sleep(60)
    assert goners.log == ["reconcile a", *["gone a"] * 4, "reconcile a"]


async def test_a_predicate_hides_no_disappearance(client: Client) -> None:
    goners = Goners()
    await client.create(secret("a"))
    async with Manager(client).add(goners.controller(when=lambda old, new: False)).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
    assert goners.log == ["gone a"]


async def test_who_takes_over_calls_for_what_the_leader_owed(server: ApiServer, client: Client) -> None:
    first, second, network = Goners(*[OSError("away")] * 99), Goners(), Network(server)
    made = await client.create(secret("a"))
    election = LeaderElection(name="e", namespace=SPACE)
    async with asyncio.TaskGroup() as group:
        leader = Manager(network.client, leader_election=election).add(first.controller())
        leading = group.create_task(_outcome(leader.serve(asyncio.Event())))
        await asyncio.sleep(5)
        other, stop = Manager(client, leader_election=election).add(second.controller()), asyncio.Event()
        standing_by = group.create_task(other.serve(stop))
        await asyncio.sleep(5)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
        network.cut()  # the leader cannot renew its Lease
        await asyncio.sleep(60)
        stop.set()
        await standing_by
        assert "LeadershipLost" in await leading
    assert first.gone == []
    assert second.gone == [made.metadata.uid]


async def _outcome(serving: Any) -> str:
    try:
        await serving
    except BaseException as error:
        return repr(error)
    return ""


def _gone(name: str, uid: str = "") -> Change:
    meta = ObjectMeta(name=name, namespace=SPACE, uid=uid or f"uid-{name}")
    key, record, _ = receive(to_json(Secret(metadata=meta)))
    return Change(ChangeType.DELETED, key, record, None)


async def test_who_stands_by_remembers_the_latest_alone() -> None:
    async def on_gone(gone: Gone) -> None: ...

    objects = GoneObjects(on_gone, lambda request, change: None, lambda request, metadata: None)  # type: ignore[arg-type,return-value]
    objects.changed(_gone("a"))
    await asyncio.sleep(STANDBY_MEMORY - 1)
    objects.changed(_gone("b"))
    assert Key(SPACE, "a") in objects
    await asyncio.sleep(2)
    objects.changed(_gone("c"))
    assert [name for name in "abc" if Key(SPACE, name) in objects] == ["b", "c"]


async def test_of_two_of_one_name_each_is_remembered_for_its_own_time() -> None:
    called: list[str] = []

    async def on_gone(gone: Gone) -> None:
        called.append(gone.metadata.uid)

    def make(request: Any, metadata: ObjectMeta) -> Any:
        return SimpleNamespace(metadata=metadata)

    objects = GoneObjects(on_gone, lambda request, change: None, make)
    objects.changed(_gone("a", "first"))
    await asyncio.sleep(STANDBY_MEMORY - 1)
    objects.changed(_gone("a", "second"))
    await asyncio.sleep(2)
    objects.changed(_gone("b"))
    assert Key(SPACE, "a") in objects
    await objects.call(Key(SPACE, "a"))
    assert called == ["second"]


async def test_what_came_to_us_is_owed_for_as_long_as_its_call_fails() -> None:
    async def on_gone(gone: Gone) -> None: ...

    objects = GoneObjects(on_gone, lambda request, change: None, lambda request, metadata: None)  # type: ignore[arg-type,return-value]
    ours: set[Key] = set()
    objects.leads, objects.owns = True, ours.__contains__
    objects.changed(_gone("a"))
    objects.changed(_gone("b"))
    ours.add(Key(SPACE, "a"))
    for name in ("c", "d"):
        await asyncio.sleep(STANDBY_MEMORY + 1)
        objects.changed(_gone(name))
    assert [name for name in "abcd" if Key(SPACE, name) in objects] == ["a", "d"]
    ours.clear()
    await asyncio.sleep(STANDBY_MEMORY + 1)
    objects.changed(_gone("e"))
    assert objects.waiting() == [Key(SPACE, "e")], "of what has moved on, no more than a memory is kept"


def test_what_is_known_of_an_object_that_cannot_be_read() -> None:
    record = Record(raw=b'{"metadata": {"name": 1, "labels": "none"}}', version=7, uid="u-1", generation=1)
    metadata = _metadata(Key("shop", "web"), record)
    assert (metadata.namespace, metadata.name, metadata.uid, metadata.labels) == ("shop", "web", "u-1", {})
