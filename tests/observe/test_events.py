"""Events: counted, combined, limited; written as kubectl shows them; never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Namespace
from konverge.objects.meta import ObjectMeta
from konverge.observe.correlate import BURST, COMBINED, SIMILAR, About, Correlator
from konverge.observe.events import WAITING, EventRecorder

pytestmark = pytest.mark.spec("R-30")

ABOUT = About("v1", "Pod", "shop", "web", "u-1")


def test_the_same_again_is_counted() -> None:
    correlator = Correlator()
    counts = [correlator.correlate(ABOUT, "Normal", "Pulled", "done", now) for now in (1.0, 2.0, 3.0)]
    assert [(event.count, event.first, event.last) for event in counts if event] == [(3, 1.0, 3.0)] * 3


def test_many_similar_ones_become_one() -> None:
    correlator = Correlator()
    events = [correlator.correlate(ABOUT, "Warning", "Failed", f"attempt {n}", float(n)) for n in range(SIMILAR + 5)]
    texts = [event.message for event in events if event]
    assert texts[: SIMILAR - 1] == [f"attempt {n}" for n in range(SIMILAR - 1)]
    assert all(text.startswith(COMBINED) for text in texts[SIMILAR - 1 :])
    last = events[-1]
    assert last is not None
    assert (last.message, last.count) == (COMBINED + f"attempt {SIMILAR + 4}", 6)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=200))
def test_a_flood_about_one_object_is_cut(gaps: list[float]) -> None:
    correlator = Correlator()
    now, written = 0.0, []
    for gap in gaps:
        now += gap
        if correlator.correlate(ABOUT, "Normal", "Tick", "tick", now):
            written.append(now)
    assert len(written) <= BURST + now / 300 + 1


def test_another_object_has_a_budget_of_its_own() -> None:
    correlator = Correlator()
    for _ in range(BURST + 10):
        correlator.correlate(ABOUT, "Normal", "Tick", "tick", 0.0)
    other = About("v1", "Pod", "shop", "db", "u-2")
    assert correlator.correlate(ABOUT, "Normal", "Tick", "tick", 0.0) is None
    assert correlator.correlate(other, "Normal", "Tick", "tick", 0.0) is not None


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        yield client


async def events_of(client: Client, name: str) -> list[Event]:
    selector = f"involvedObject.name={name},involvedObject.kind=ConfigMap"
    return (await client.list(Event, "default", field_selector=selector)).items


@pytest.mark.virtual
async def test_events_are_written_and_counted(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "shop-operator")
    running = asyncio.create_task(recorder.run())
    recorder.event(about, "Normal", "Created", "made a thing")
    await asyncio.sleep(60)
    recorder.event(about, "Normal", "Created", "made a thing")
    await asyncio.sleep(1)
    (event,) = await events_of(client, "a")
    assert (event.type, event.reason, event.message, event.count) == ("Normal", "Created", "made a thing", 2)
    assert event.source is not None
    assert event.source.component == "shop-operator"
    assert event.involved_object.uid == about.metadata.uid
    assert (event.first_timestamp or "") < (event.last_timestamp or "")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.virtual
async def test_what_is_left_at_the_end_is_flushed(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "op")
    running = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    recorder.event(about, "Normal", "Last", "goodbye")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [event.reason for event in await events_of(client, "a")] == ["Last"]


@pytest.mark.virtual
async def test_one_recorder_writes_in_the_name_of_several(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "manager")
    running = asyncio.create_task(recorder.run())
    recorder.event(about, "Normal", "Seen", "same words")
    recorder.named("shop-controller").event(about, "Normal", "Seen", "same words")
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    told = [
        (event.source and event.source.component, event.reporting_instance, event.count)
        for event in await events_of(client, "a")
    ]
    assert sorted(told) == [("manager", "manager", 1), ("shop-controller", "shop-controller", 1)]


@pytest.mark.virtual
async def test_events_in_a_namespace_that_goes_are_dropped_without_a_word(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="going", finalizers=["test/stay"])))
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="going")))
    await client.delete(Namespace, "going")
    recorder = EventRecorder(client, "op")
    running = asyncio.create_task(recorder.run())
    recorder.event(about, "Normal", "Last", "goodbye")
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (await client.list(Event, "going")).items == []
    assert caplog.records == []


async def test_a_recorder_that_cannot_write_drops_the_oldest(client: Client) -> None:
    about = ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))
    recorder = EventRecorder(client, "op")
    for number in range(WAITING + 7):
        recorder.event(about, "Normal", "Tick", str(number))
    assert recorder.dropped == 7
