"""The examples that show one topic each do what they say, on a whole cluster and on virtual time."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import konverge.runtime.sharding.shares  # noqa: F401 - before any loop runs
from konverge import Client, ObjectMeta
from konverge.client import Forbidden, Invalid, MergePatch
from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import ConfigMap, Container, Event, Pod, PodSpec
from konverge.sim import Cluster
from konverge.testing import RunOperator

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SPACE = "default"

pytestmark = pytest.mark.spec("O-92")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are looked up in the module by its name
    spec.loader.exec_module(module)
    return module


def meta(name: str, **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=SPACE, labels=labels)


async def change(client: Client, kind: Any, name: str, **spec: Any) -> None:
    await client.patch(kind, name, MergePatch({"spec": spec}), SPACE)


async def test_creation(cluster: Cluster, operator: RunOperator) -> None:
    example = load("02_creation")
    async with operator(example.manager):
        await cluster.client.create(example.Note(metadata=meta("n"), spec=example.NoteSpec(text="hello")))
        await cluster.settle()
        assert (await cluster.client.get(ConfigMap, "n", SPACE)).data == {"text": "hello"}
        assert (await cluster.client.get(example.Note, "n", SPACE)).status.kept_in == "n"


async def test_a_change_of_one_field_counts_once_and_others_do_not(cluster: Cluster, operator: RunOperator) -> None:
    example = load("03_field_updates")
    client = cluster.client
    async with operator(example.manager):
        await client.create(example.Lamp(metadata=meta("l"), spec=example.LampSpec(colour="red")))
        await cluster.settle()
        await change(client, example.Lamp, "l", place="hall")
        await change(client, example.Lamp, "l", colour="blue")
        await cluster.settle()
    async with operator(example.manager):
        await cluster.settle()
    assert to_dict((await client.get(example.Lamp, "l", SPACE)).status) == {"colour": "blue", "switched": 2}
    events = [event for event in (await client.list(Event, SPACE)).items if event.involved_object.kind == "Lamp"]
    assert sorted(event.message or "" for event in events) == ["from off to red", "from red to blue"]


async def test_a_new_process_resumes(cluster: Cluster, operator: RunOperator, caplog: pytest.LogCaptureFixture) -> None:
    example = load("04_resuming")
    caplog.set_level("INFO", "pumps")
    async with operator(example.manager):
        await cluster.client.create(example.Pump(metadata=meta("p"), spec=example.PumpSpec(address="10.0.0.1")))
        await cluster.settle()
    example.connections.clear()  # what a process holds ends with it
    async with operator(example.manager):
        await cluster.settle()
    assert [r.getMessage() for r in caplog.records if r.name == "pumps"] == ["connected p", "resumed p"]


async def test_a_timer_comes_back(cluster: Cluster, operator: RunOperator) -> None:
    example = load("05_timers")
    async with operator(example.manager):
        await cluster.client.create(example.Meter(metadata=meta("m"), spec=example.MeterSpec(interval_seconds=600)))
        await cluster.clock.advance(3599)
        assert (await cluster.client.get(example.Meter, "m", SPACE)).status.readings == 6
        await change(cluster.client, example.Meter, "m", intervalSeconds=100)
        await cluster.clock.advance(999)
        assert (await cluster.client.get(example.Meter, "m", SPACE)).status.readings == 16


async def test_a_daemon_lives_as_long_as_its_object(cluster: Cluster, operator: RunOperator) -> None:
    example = load("06_daemons")
    client, seen = cluster.client, example.seen
    async with operator(example.manager):
        await client.create(example.Feed(metadata=meta("f"), spec=example.FeedSpec(url="a")))
        await cluster.clock.advance(12)
        assert seen == ["a"] * 3
        await change(client, example.Feed, "f", url="b")
        await cluster.clock.advance(6)
        assert seen[3:] == ["b"] * 2
        await client.delete(example.Feed, "f", SPACE)
        await cluster.clock.advance(60)
        assert seen[3:] == ["b"] * 2
        assert (await client.list(example.Feed, SPACE)).items == []
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("feed default/")]
        await client.create(example.Feed(metadata=meta("g"), spec=example.FeedSpec(url="c")))
        await cluster.clock.advance(1)
    async with operator(example.manager):  # another process goes on with what is there
        await cluster.clock.advance(1)
    assert seen[5:] == ["c", "c"]


async def test_children_come_and_go(cluster: Cluster, operator: RunOperator) -> None:
    example = load("07_children")
    client = cluster.client

    async def chapters() -> dict[str, str]:
        maps = (await client.list(ConfigMap, SPACE)).items
        return {item.metadata.name: item.data["text"] for item in maps if item.metadata.name.startswith("b-")}

    async with operator(example.manager):
        await client.create(example.Book(metadata=meta("b"), spec=example.BookSpec(chapters={"one": "1", "two": "2"})))
        await cluster.settle()
        assert await chapters() == {"b-one": "1", "b-two": "2"}
        await change(client, example.Book, "b", chapters={"one": None, "two": "II"})
        await cluster.settle()
        assert await chapters() == {"b-two": "II"}
        await client.delete(example.Book, "b", SPACE)
        await cluster.settle()
        assert await chapters() == {}


async def test_an_index_finds_the_pods_of_a_node(cluster: Cluster, operator: RunOperator) -> None:
    example = load("08_indexing")
    node, other = cluster.node_names[:2]
    async with operator(example.manager):
        watched = example.WatchedNode(metadata=meta("w"), spec=example.WatchedNodeSpec(node=node))
        await cluster.client.create(watched)
        for name, where in (("here", node), ("there", other)):
            spec = PodSpec(containers=[Container(name="c", image="i")], node_name=where)
            await cluster.client.create(Pod(metadata=meta(name), spec=spec))
        await cluster.settle()
        assert (await cluster.client.get(example.WatchedNode, "w", SPACE)).status.pods == ["here"]


@pytest.mark.spec("R-66", "R-71")
async def test_rules_and_functions_decide_about_writes(cluster: Cluster, operator: RunOperator) -> None:
    example = load("09_admission")
    client = cluster.client
    async with operator(example.manager):
        with pytest.raises(Invalid, match="least must not be over most"):
            await client.create(example.Pool(metadata=meta("p"), spec=example.PoolSpec(least=5, most=4)))
        made = await client.create(example.Pool(metadata=meta("p", keep="yes"), spec=example.PoolSpec(most=4)))
        assert made.spec.owner
        with pytest.raises(Invalid, match=r"spec.most: Invalid value: 3: a pool does not shrink"):
            await change(client, example.Pool, "p", most=3)
        await change(client, example.Pool, "p", most=60)
        with pytest.raises(Forbidden, match="the pool has the label keep"):
            await client.delete(example.Pool, "p", SPACE)
        labels = MergePatch({"metadata": {"labels": {"keep": None}}})
        await client.patch(example.Pool, "p", labels, SPACE)
        await client.delete(example.Pool, "p", SPACE)


async def test_two_copies_share_the_work_and_one_takes_over(cluster: Cluster, operator: RunOperator) -> None:
    example = load("10_peering")
    client = cluster.client

    async def make(*names: str) -> None:
        for name in names:
            await client.create(ConfigMap(metadata=meta(name, stamp="wanted")))

    async def shares() -> list[int]:
        return [len(m.shares.replica.membership.share) for m in (first, second)]

    async with operator(example.manager) as first:
        async with operator(example.manager) as second:
            await asyncio.sleep(5)
            assert sum(await shares()) == 1024
            assert all(await shares())
            await make("a", "b", "c")
            await cluster.settle()
        assert await shares() == [1024, 0]
        await make("d")
        await cluster.settle()
    listed = (await client.list(ConfigMap, SPACE, label_selector="stamp")).items
    assert [item.metadata.labels.get("stamp") for item in listed] == ["done"] * 4
