"""The event recorder: events are written as kubectl shows them, and never delay a reconcile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Namespace
from konverge.objects.meta import ObjectMeta
from konverge.observe.events import MAX_WAITING, EventRecorder, with_new_order

pytestmark = pytest.mark.spec("R-30")


async def events_of(client: Client, name: str) -> list[Event]:
    selector = f"involvedObject.name={name},involvedObject.kind=ConfigMap"
    return (await client.list(Event, "default", field_selector=selector)).items


@pytest.mark.virtual
async def test_events_are_written_and_counted(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "shop-operator")
    running = asyncio.create_task(recorder.run())
    recorder.event("Created", "made a thing", about=about)
    await asyncio.sleep(60)
    recorder.event("Created", "made a thing", about=about)
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
async def test_waiting_events_are_flushed_at_the_end(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "op")
    running = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    recorder.event("Last", "goodbye", about=about)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [event.reason for event in await events_of(client, "a")] == ["Last"]


@pytest.mark.virtual
async def test_one_recorder_writes_events_of_several_components(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "manager")
    running = asyncio.create_task(recorder.run())
    recorder.event("Seen", "same message", about=about)
    recorder.named("shop-controller").event("Seen", "same message", about=about)
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    sources = [
        (event.source and event.source.component, event.reporting_instance, event.count)
        for event in await events_of(client, "a")
    ]
    assert sorted(sources) == [("manager", "manager", 1), ("shop-controller", "shop-controller", 1)]


@pytest.mark.virtual
async def test_events_in_a_namespace_that_is_being_deleted_are_dropped_silently(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="going", finalizers=["test/stay"])))
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="going")))
    await client.delete(Namespace, "going")
    recorder = EventRecorder(client, "op")
    running = asyncio.create_task(recorder.run())
    recorder.event("Last", "goodbye", about=about)
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (await client.list(Event, "going")).items == []
    assert caplog.records == []


async def test_a_recorder_that_cannot_write_drops_the_oldest(client: Client) -> None:
    about = ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))
    recorder = EventRecorder(client, "op")
    for number in range(MAX_WAITING + 7):
        recorder.event("Tick", str(number), about=about)
    assert recorder.dropped == 7


class Old:
    """A recorder that was written for earlier versions."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def event(self, about: Any, type: str, reason: str, message: str) -> None:
        self.events.append((about.metadata.name, type, reason, message))


@pytest.mark.virtual
@pytest.mark.spec("O-68")
async def test_the_order_of_earlier_versions_works_with_a_warning(client: Client) -> None:
    about = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    recorder = EventRecorder(client, "shop")
    writing = asyncio.create_task(recorder.run())
    for recording in (recorder, recorder.named("other")):
        with pytest.warns(DeprecationWarning, match="docs/migrating.md"):
            recording.event(about, "Warning", "Created", "made a thing")
    await asyncio.sleep(1)
    writing.cancel()
    written = [(event.source.component, event.type, event.reason) for event in await events_of(client, "a")]
    assert sorted(written) == [("other", "Warning", "Created"), ("shop", "Warning", "Created")]


@pytest.mark.spec("O-68")
async def test_an_event_about_nothing_is_refused(client: Client) -> None:
    recorder = EventRecorder(client, "shop")
    with pytest.raises(TypeError, match="about="):
        recorder.event("Created", "made a thing")  # type: ignore[call-overload]


@pytest.mark.spec("O-68")
async def test_a_recorder_for_earlier_versions_is_called_in_its_order() -> None:
    about = ConfigMap(metadata=ObjectMeta(name="a"))
    old = Old()
    with pytest.warns(DeprecationWarning, match=r"Old\.event"):
        recorder = with_new_order(old)
    recorder.event("Created", "made a thing", about=about, type="Warning")
    assert old.events == [("a", "Warning", "Created", "made a thing")]
    assert with_new_order(recorder) is recorder
