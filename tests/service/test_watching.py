"""Streams: what there is, then every change; resumed, bounded, and ended in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.operators.nacos.resource import Nacos
from konverge.service import ServiceOptions
from konverge.wire.message import Request, Stream
from tests.operators.nacos.world import CLUSTER, a_simulated_world
from tests.service.desk import ALL, READ, SPACE, STREAM, Desk, a_desk, listening

pytestmark = [pytest.mark.spec("N-22"), pytest.mark.virtual]


async def phase(desk: Desk, name: str, phase: str) -> None:
    await desk.admin.patch(Nacos, name, MergePatch({"status": {"phase": phase}}), SPACE, subresource="status")


async def test_a_stream_sends_the_instances_and_then_every_change() -> None:
    async with a_desk() as desk:
        await desk.create("a")
        await desk.create("b")
        async with listening(desk) as stream:
            first = await stream.take(3)
            assert [(item.event, item.data.get("name"), item.id) for item in first[:2]] == [
                ("added", "a", ""),
                ("added", "b", ""),
            ]
            assert (first[2].event, first[2].id != "") == ("synced", True)
            await phase(desk, "a", "Creating")
            await desk.create("c")
            await desk.send("DELETE", f"{ALL}/b")
            changes = await stream.take(3)
            assert [(change.event, change.data["name"], change.data["phase"]) for change in changes] == [
                ("modified", "a", "Creating"),
                ("added", "c", "Pending"),
                ("deleted", "b", "Pending"),
            ]
            ids = [int(change.id) for change in changes]
            assert ids == sorted(ids)


async def test_a_stream_is_resumed_where_its_reader_stopped() -> None:
    async with a_desk() as desk:
        await desk.create("a")
        async with listening(desk) as stream:
            await stream.take(2)
            seen = stream.last_id
        await desk.create("b")
        await phase(desk, "a", "Running")
        async with listening(desk, last_event_id=seen) as stream:
            assert [(item.event, item.data["name"]) for item in await stream.take(2)] == [
                ("added", "b"),
                ("modified", "a"),
            ]


async def test_a_reader_that_was_away_for_too_long_gets_a_reset() -> None:
    async with a_desk() as desk:
        await desk.create("a")
        async with listening(desk) as stream:
            await stream.take(2)
            seen = stream.last_id
        await desk.create("b")
        await desk.send("DELETE", f"{ALL}/a")
        desk.server.store.compact(desk.server.store.revision)
        async with listening(desk, last_event_id=seen) as stream:
            events = await stream.take(3)
            assert [(item.event, item.data.get("name", "")) for item in events] == [
                ("reset", ""),
                ("added", "b"),
                ("synced", ""),
            ]
            await desk.create("c")
            assert (await stream.take(1))[0].data["name"] == "c"


async def test_a_foreign_event_id_is_refused() -> None:
    async with a_desk() as desk:
        for text in ("x", "-1", "1" * 21, "1\u00b2"):
            assert (await desk.send("GET", STREAM, last_event_id=text)).status == 400


async def test_a_head_opens_no_watch_and_answers_elsewhere_as_a_get_does() -> None:
    async with a_desk() as desk:
        assert (await desk.send("HEAD", STREAM)).status == 405
        listed = await desk.send("HEAD", ALL)
        assert (listed.status, listed.body) == (200, b"")


async def test_one_instance_and_labels_can_be_watched_alone() -> None:
    async with a_desk() as desk:
        await desk.create("a")
        await desk.send("POST", ALL, {"name": "b", "labels": {"team": "shop"}})
        for path in (f"{STREAM}/b", f"{STREAM}?labelSelector=team%3Dshop"):
            async with listening(desk, path) as stream:
                assert [item.data.get("name") for item in await stream.take(2)] == ["b", None]
                await phase(desk, "a", "Running")
                await phase(desk, "b", "Creating")
                await phase(desk, "b", "Running")
                events = await stream.take(2)
                assert [(item.data["name"], item.data["phase"]) for item in events] == [
                    ("b", "Creating"),
                    ("b", "Running"),
                ]


async def test_a_silent_stream_beats_and_ends_after_its_time() -> None:
    async with a_desk(ServiceOptions(stream_time=100, heartbeat=15)) as desk:
        loop = asyncio.get_running_loop()
        async with listening(desk) as stream:
            assert (await stream.take(1))[0].event == "synced"
            began = loop.time()
            assert await stream.next() is None
            assert 95 <= loop.time() - began <= 115
            assert stream.heartbeats == 6
        async with listening(desk, last_event_id=stream.last_id) as stream:
            await desk.create("a")
            assert (await stream.take(1))[0].data["name"] == "a"


async def test_streams_end_in_order_when_the_service_stops_and_none_begins_any_more() -> None:
    async with a_desk() as desk, listening(desk) as entry, listening(desk) as two:
        assert [(await each.take(1))[0].event for each in (entry, two)] == ["synced", "synced"]
        desk.service.stop()
        assert await entry.next() is None
        assert await two.next() is None
        late = await desk.send("GET", STREAM)
        assert late.status == 503
        assert late.headers.get("retry-after")
        assert (await desk.send("GET", "/readyz")).status == 503


async def test_the_number_of_streams_is_bounded_for_all_and_for_each() -> None:
    async with a_desk(ServiceOptions(streams=3, streams_per_caller=2)) as desk:
        token = await desk.account("reader", *READ)
        async with listening(desk) as entry, listening(desk) as two:
            await entry.take(1)
            await two.take(1)
            assert (await desk.send("GET", STREAM)).status == 429
            async with listening(desk, token=token) as three:
                await three.take(1)
                assert (await desk.send("GET", STREAM, token=token)).status == 503
            async with listening(desk, token=token) as again:
                await again.take(1)
        async with listening(desk) as free:
            await free.take(1)


async def test_many_at_once_do_not_get_past_the_bounds() -> None:
    async with a_desk() as whole:
        gate = asyncio.Event()

        class Slow:
            """A way to the API server on which watches are opened when the gate is."""

            send = whole.server.transport.send

            async def stream(self, request: Request) -> Stream:
                await gate.wait()
                return await whole.server.transport.stream(request)

        desk = Desk(Slow(), whole.token, whole.admin, ServiceOptions(streams_per_caller=2))
        begun = [asyncio.create_task(desk.direct.stream(desk.request("GET", STREAM))) for _ in range(5)]
        done, _ = await asyncio.wait(begun[2:])
        assert [task.result().status for task in done] == [429] * 3
        gate.set()
        streams = await asyncio.gather(*begun)
        assert sorted(stream.status for stream in streams) == [200, 200, 429, 429, 429]
        assert desk.service.streams == 2
        for stream in streams:
            await stream.aclose()
        assert desk.service.streams == 0
        await desk.close()


async def test_the_first_instances_of_a_stream_are_bounded() -> None:
    async with a_desk(ServiceOptions(initial=2)) as desk:
        for name in ("a", "b", "c"):
            await desk.create(name)
        refused = await desk.send("GET", STREAM)
        assert refused.status == 413
        assert "labelSelector" in refused.problem["detail"]


async def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    async with a_desk(ServiceOptions(stalled=30, stream_time=100_000)) as desk:
        await desk.create("a")
        stream = await desk.direct.stream(desk.request("GET", STREAM))
        try:
            for number in range(100):
                labels = {f"label-{key}": f"{number}".rjust(60, "x") for key in range(60)}
                await desk.admin.patch(Nacos, "a", MergePatch({"metadata": {"labels": labels}}), SPACE)
            assert desk.service.streams == 1
            await asyncio.sleep(60)
            assert desk.service.streams == 0
        finally:
            await stream.aclose()


async def test_phases_are_shown_as_the_operator_brings_an_instance_up_and_scales_it() -> None:
    async with a_simulated_world(nodes=5) as (world, _), world.operating():
        server = world.cluster.server
        desk = Desk(server.transport, server.token, world.client, ServiceOptions(stream_time=3600))
        async with listening(desk) as stream:
            assert (await stream.take(1))[0].event == "synced"
            await desk.create("shop", **CLUSTER)
            assert (await until(stream, "Running", ready=3))[:2] == ["Pending", "Creating"]
            events = (await desk.send("GET", f"{ALL}/shop")).json
            assert {item["role"] for item in events["servers"]} == {"leader", "follower"}
            assert events["leader"] in [item["pod"] for item in events["servers"]]
            assert (events["healthy"], events["version"], events["message"]) == (True, "2.0.4", "")
            await desk.send("PATCH", f"{ALL}/shop", {"replicas": 5})
            await until(stream, "Running", ready=5)
            events = (await desk.send("GET", f"{ALL}/shop/events")).json["items"]
            assert events
            assert (await desk.send("DELETE", f"{ALL}/shop")).status in (202, 204)
            while (said := await stream.next()) is not None and said.event != "deleted":
                pass
            assert said is not None
        await desk.close()


async def until(stream: Any, phase: str, *, ready: int) -> list[str]:
    """The phases on the way there, each once."""
    phases: list[str] = []
    while True:
        said = await stream.next()
        assert said is not None
        if said.data["phase"] not in phases:
            phases.append(said.data["phase"])
        if said.data["phase"] == phase and said.data["readyReplicas"] == ready and said.data["upToDate"]:
            return phases
