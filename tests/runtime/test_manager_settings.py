"""What a manager makes of its arguments: settings, metrics, events, permissions, health, the end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.runtime import Context, Controller, Manager, Settings, Source
from konverge.runtime.config import Configuration, ConfigurationError
from konverge.runtime.manager import LeaderElection, MissingPermissions
from konverge.runtime.result import Request as Key
from konverge.wire import ConnectionPool
from konverge.wire.errors import WireError
from konverge.wire.message import Request
from tests.runtime.objects import SPACE, config_map, secret

HERE = (SPACE,)


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


def now() -> float:
    return asyncio.get_running_loop().time()


async def scrape(manager: Manager) -> dict[tuple[str, ...], float]:
    response = await manager.health.handle(Request("GET", "/metrics"))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.body.decode())
        for sample in family.samples
    }


@pytest.mark.virtual
@pytest.mark.spec("R-11")
async def test_settings_of_a_controller_go_before_those_of_the_manager_and_of_the_configuration(client: Client) -> None:
    config = Configuration(controller=Settings(base_delay=3, max_delay=30, timeout=300))
    manager = Manager(client, config=config, settings=Settings(base_delay=2, max_delay=20))
    manager.add(Controller(Secret, nothing, name="own", namespaces=HERE, settings=Settings(base_delay=1)))
    manager.add(Controller(Secret, nothing, name="usual", namespaces=HERE))
    async with manager.running():
        own, usual = (manager.engines[name].settings for name in ("own", "usual"))
    assert (own.base_delay, own.max_delay, own.timeout) == (1, 20, 300)
    assert (usual.base_delay, usual.max_delay, usual.timeout) == (2, 20, 300)


@pytest.mark.virtual
@pytest.mark.spec("R-01")
async def test_impossible_settings_end_the_start(client: Client) -> None:
    manager = Manager(client).add(Controller(Secret, nothing, settings=Settings(base_delay=10, max_delay=1)))
    with pytest.raises(ConfigurationError):
        await manager.serve(asyncio.Event())


@pytest.mark.virtual
@pytest.mark.spec("R-28", "R-27")
async def test_a_scrape_has_the_numbers_of_controllers_and_says_who_leads(client: Client) -> None:
    def cakes() -> Iterable[Any]:
        return [GaugeMetricFamily("cakes", "Cakes baked", value=3)]

    election = LeaderElection(name="op", identity="me")
    leader = Manager(client, leader_election=election)
    leader.add(Controller(Secret, nothing, metrics=cakes, owns=[ConfigMap], namespaces=HERE))
    standby = Manager(client, leader_election=LeaderElection(name="op", identity="other"))
    standby.add(Controller(Secret, nothing, namespaces=HERE))
    stop = asyncio.Event()
    async with leader.running():
        serving = asyncio.create_task(standby.serve(stop))
        await asyncio.sleep(5)
        samples = await scrape(leader)
        assert samples[("cakes",)] == 3
        assert samples["leader_election_master_status", "op"] == 1
        assert {key[1] for key in samples if key[0] == "informer_objects"} == {
            "secrets in default",
            "configmaps in default",
        }
        assert (await scrape(standby))["leader_election_master_status", "op"] == 0
        stop.set()
        await serving
    assert (await scrape(leader))["leader_election_master_status", "op"] == 0


@pytest.mark.virtual
@pytest.mark.spec("R-30")
async def test_events_come_from_the_manager_or_from_the_component_of_a_controller(client: Client) -> None:
    async def record(ctx: Context[Any]) -> None:
        ctx.event("Seen", "seen")

    await client.create(secret("a"))
    await client.create(config_map("b"))
    manager = Manager(client, name="shop")
    manager.add(Controller(Secret, record, namespaces=HERE))
    manager.add(Controller(ConfigMap, record, namespaces=HERE, component="shop-maps"))
    async with manager.running():
        await asyncio.sleep(5)
    events = await client.list(Event, SPACE)
    sources = {
        event.involved_object.kind: event.source and event.source.component
        for event in events
        if event.reason == "Seen"
    }
    assert sources == {"Secret": "shop", "ConfigMap": "shop-maps"}


@pytest.mark.virtual
@pytest.mark.spec("R-01", "R-27")
async def test_permissions_are_checked_for_the_lease_too_and_not_at_all_if_not_wanted(
    server: ApiServer, client: Client
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor", "namespace": SPACE}}
    await client.create(account)
    token = await client.request_token("poor", SPACE)
    poor = Client(server.transport, credentials=Static.bearer(token.token))
    election = LeaderElection(name="op", namespace="ops")
    with pytest.raises(MissingPermissions, match=r"update leases\.coordination\.k8s\.io in namespace ops"):
        await Manager(poor, leader_election=election).add(Controller(Secret, nothing)).serve(asyncio.Event())
    with pytest.raises(MissingPermissions) as caught:
        await Manager(poor).add(Controller(Secret, nothing)).serve(asyncio.Event())
    assert "leases" not in str(caught.value)
    stop = asyncio.Event()
    stop.set()
    await Manager(poor, check_permissions=False).add(Controller(Secret, nothing)).serve(stop)


@pytest.mark.virtual
@pytest.mark.spec("R-23", "R-29")
async def test_readiness_remarks_sources_that_are_down(client: Client) -> None:
    async def broken() -> AsyncIterator[Key]:
        for name in ("a", ""):
            if not name:
                raise LookupError("no queue")
            yield Key(SPACE, name)

    manager = Manager(client).add(
        Controller(Secret, nothing, namespaces=HERE, sources=[Source(name="mail", requests=broken)])
    )
    async with manager.running():
        await asyncio.sleep(1)
        response = await manager.health.handle(Request("GET", "/readyz?verbose"))
    assert response.status == 200
    assert "[!]sources: secret mail: " in response.body.decode()
    assert "no queue" in response.body.decode()


@pytest.mark.virtual
@pytest.mark.spec("R-04", "R-26")
async def test_a_controller_that_waits_for_a_dependency_does_not_delay_the_end(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(address: str) -> bool:
        return False

    monkeypatch.setattr("konverge.runtime.dependencies._connects", away)
    await client.create(secret("a"))
    manager = Manager(client, shutdown_timeout=100)
    manager.add(Controller(Secret, nothing, namespaces=HERE, depends_on=["tcp://db:3306"]))
    async with manager.running():
        await asyncio.sleep(10)
    assert now() == pytest.approx(10, abs=0.1)
    assert "did not finish" not in caplog.text


@pytest.mark.virtual
@pytest.mark.parametrize("dedicated", [True, False])
async def test_the_memory_of_a_process_of_its_own_is_frozen(client: Client, dedicated: bool) -> None:
    gc.unfreeze()
    manager = Manager(client).add(Controller(Secret, nothing, namespaces=HERE))
    manager.dedicated = dedicated
    try:
        async with manager.running():
            assert (gc.get_freeze_count() > 0) is dedicated
    finally:
        gc.unfreeze()


@pytest.mark.spec("R-29", "R-04")
async def test_health_is_served_at_its_address_from_the_start_to_the_end(client: Client) -> None:
    manager = Manager(client, health_address=("127.0.0.1", 0)).add(Controller(Secret, nothing, namespaces=HERE))
    async with manager.running():
        port = manager.health_port
        pool = ConnectionPool(f"http://127.0.0.1:{port}")
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await pool.send(Request("GET", path))).status == 200
        await pool.aclose()
    pool = ConnectionPool(f"http://127.0.0.1:{port}")
    with pytest.raises((WireError, OSError)):
        await pool.send(Request("GET", "/healthz"))
    await pool.aclose()
