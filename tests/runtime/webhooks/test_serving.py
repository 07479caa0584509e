"""Webhooks in the life of a manager: on every replica, before leadership, and until the endpoint is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.manager import LeaderElection
from konverge.runtime.webhooks import InProcess, Webhook, Webhooks, validating
from konverge.runtime.webhooks.places import Place, Serving
from konverge.runtime.webhooks.serving import serving_webhooks
from konverge.wire.message import Headers, Request

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-67")]


class Echo(Webhook):
    path = "/echo"

    async def answer(self, review: bytes) -> bytes:
        return review


class Noted(Place):
    """A place behind a Service that notes when it serves."""

    def __init__(self, *, late: float = 0.0, broken: bool = False) -> None:
        self.late, self.broken = late, broken
        self.served: list[tuple[str, float]] = []

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        if self.broken:
            raise OSError("the port is taken")
        await asyncio.sleep(self.late)
        at_work.problem = ""
        self.served.append(("begin", loop.time()))
        yield
        self.served.append(("end", loop.time()))
        at_work.problem = "no longer served"


async def nothing(ctx: Context[ConfigMap]) -> None: ...


def manager(client: Client, place: Place, delay: float = 5.0) -> Manager:
    webhooks = Webhooks(place=place, shutdown_delay=delay).add(Echo())
    election = LeaderElection(name="lease", namespace="default")
    declared = Manager(client, name="m", webhooks=webhooks, leader_election=election)
    return declared.add(Controller(ConfigMap, nothing))


async def ready(manager: Manager, check: str = "readyz/webhook") -> bool:
    return (await manager.health.handle(Request("GET", f"/{check}"))).status == 200


async def test_every_replica_serves_and_not_only_the_leader(client: Client) -> None:
    leader, other = Noted(), Noted()
    stop = asyncio.Event()
    async with manager(client, leader).running():
        standby = manager(client, other)
        task = asyncio.create_task(standby.serve(stop))
        await asyncio.sleep(3)
        assert not standby.readiness.started, "it does not lead"
        assert other.served
        assert await ready(standby)
        stop.set()
        await task


async def test_it_serves_on_for_a_while_after_the_end_was_asked_for(client: Client) -> None:
    place = Noted()
    running = manager(client, place, delay=7)
    loop = asyncio.get_running_loop()
    async with running.running():
        assert await ready(running)
        asked = loop.time()
    (_, end) = place.served[1]
    assert end - asked >= 7
    assert not await ready(running)


async def test_while_it_serves_on_it_is_not_ready(client: Client) -> None:
    place = Noted()
    running = manager(client, place, delay=7)
    stop = asyncio.Event()
    task = asyncio.create_task(running.serve(stop))
    await asyncio.sleep(3)
    assert await ready(running, "readyz")
    stop.set()
    await asyncio.sleep(3)
    assert len(place.served) == 1, "it still serves"
    assert not await ready(running, "readyz"), "so that its endpoint is removed"
    await task


async def test_controllers_wait_until_webhooks_are_served(client: Client) -> None:
    place = Noted(late=60)
    running = manager(client, place)
    stop = asyncio.Event()
    task = asyncio.create_task(running.serve(stop))
    await asyncio.sleep(30)
    assert not running.engines
    assert not await ready(running)
    await asyncio.sleep(40)
    assert running.readiness.started
    stop.set()
    await task


async def test_an_end_while_it_still_waits_is_an_end(client: Client) -> None:
    running = manager(client, Noted(late=10_000))
    stop = asyncio.Event()
    task = asyncio.create_task(running.serve(stop))
    await asyncio.sleep(30)
    stop.set()
    async with asyncio.timeout(10):
        await task


async def test_what_keeps_it_from_serving_ends_the_manager(client: Client) -> None:
    broken = manager(client, Noted(broken=True))
    with pytest.raises(OSError, match="the port is taken"):
        async with serving_webhooks(broken, client, asyncio.Event()):
            pytest.fail("nothing else begins")
    with pytest.raises(OSError, match="the port is taken"):
        async with manager(client, Noted(broken=True)).running():
            pass


async def test_what_goes_wrong_at_the_end_is_not_lost(client: Client) -> None:
    class Ends(Noted):
        @asynccontextmanager
        async def serving(self, at_work: Serving) -> AsyncIterator[None]:
            async with super().serving(at_work):
                yield
            raise OSError("it does not close")

    with pytest.raises(OSError, match="it does not close"):
        async with serving_webhooks(manager(client, Ends()), client, asyncio.Event()):
            pass


async def test_without_webhooks_nothing_is_served(client: Client) -> None:
    for webhooks in (None, Webhooks(place=Noted(broken=True))):
        plain = Manager(client, name="m", webhooks=webhooks)
        async with serving_webhooks(plain, client, asyncio.Event()):
            assert "webhook" not in plain.health.ready


async def test_the_port_is_known_as_soon_as_they_are_served(client: Client) -> None:
    class Port(Noted):
        @asynccontextmanager
        async def serving(self, at_work: Serving) -> AsyncIterator[None]:
            at_work.port = 4711
            async with super().serving(at_work):
                yield

    served = manager(client, Port())
    async with serving_webhooks(served, client, asyncio.Event()):
        assert served.webhook_port == 4711
        assert {task.get_name() for task in asyncio.all_tasks()} >= {"webhooks", "webhooks wait for the end"}


class Beside(Noted):
    """A place that is called directly, without a Service."""

    behind_service = False


class Converts(Echo):
    path = "/convert"
    definition = "pools.example.com"


@pytest.mark.parametrize("place", [Noted, Beside])
@pytest.mark.parametrize("webhook", [Echo, Converts])
async def test_only_conversions_behind_a_service_make_it_ready_before_its_caches(
    client: Client, place: type[Noted], webhook: type[Webhook]
) -> None:
    """And only behind a Service it serves on for a while, and is not ready meanwhile."""
    loop, at = asyncio.get_running_loop(), place()
    running = Manager(client, name="m", webhooks=Webhooks(place=at, shutdown_delay=7).add(webhook()))
    async with serving_webhooks(running, client, asyncio.Event()):
        assert bool(running.health.advisory) is (place is Noted and webhook is Converts)
        assert not running.readiness.stopping
        asked = loop.time()
    assert at.served[1] == ("end", asked + (7 if place is Noted else 0))
    assert running.readiness.stopping is (place is Noted)


@pytest.mark.parametrize("url", ["https://10.1.2.3:6443", "https://api.example.com", "https://[fd00::1]:6443"])
async def test_an_api_server_elsewhere_gets_no_address_of_this_machine(server: ApiServer, url: str) -> None:
    """It would call its own 127.0.0.1, and refuse every write of the kind."""
    away = Client(server.transport, credentials=Static.bearer(server.token), server=url)
    declared = Manager(away, name="m", webhooks=Webhooks().add(validating(ConfigMap, name="any")(lambda review: None)))
    with pytest.raises(ValueError, match=r"place=InCluster"):
        async with declared.running():
            pass
    assert not list(await away.list(ValidatingWebhookConfiguration))


async def test_a_bound_manager_has_the_same_webhooks_or_none(server: ApiServer, client: Client) -> None:
    declared = manager(client, Noted())
    assert declared.bound_to(client).webhooks is declared.webhooks
    assert declared.bound_to(client, webhooks=None).webhooks is None
    place = InProcess(transports=server.webhooks.in_process)
    other = Webhooks(place=place).add(Echo())
    assert declared.bound_to(client, webhooks=other).webhooks is other


async def test_reviews_are_counted(client: Client) -> None:
    from konverge.observe.exposition import render
    from konverge.runtime.webhooks.server import Reviews

    counted = Manager(client)
    reviews = Reviews(Webhooks().add(Echo()))
    counted.numbers.more.append(reviews.metrics)
    headers = Headers.of({"content-type": "application/json"})
    for body in (b"{}", b"{}", b""):
        await reviews.handle(Request("POST", "/echo", headers, body))
    await reviews.handle(Request("POST", "/unknown", headers, b"{}"))
    text = render(counted.numbers).decode()
    assert 'konverge_webhook_requests_total{code="200",webhook="/echo"} 2.0' in text
    assert 'konverge_webhook_requests_total{code="400",webhook="/echo"} 1.0' in text
    assert "konverge_webhook_requests_in_flight 0.0" in text
    assert "unknown" not in text
    reviews.in_flight = 3
    assert "konverge_webhook_requests_in_flight 3.0" in render(counted.numbers).decode()
