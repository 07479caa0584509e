"""The manager's life: order of start and end, health, metrics, leadership, what it says when it cannot start."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Use, dependencies
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import CacheSettings, Configuration
from konverge.runtime.dependencies import DependencyError
from konverge.runtime.elector import LeaderElector, LeadershipLost
from konverge.runtime.manager import LeaderElection
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from tests.runtime.objects import config_map, secret
from tests.runtime.test_elector import Unreliable

pytestmark = pytest.mark.virtual


async def nothing(ctx: Context[Secret]) -> None:
    """A reconciler that is content."""


async def ask(manager: Manager, path: str) -> tuple[int, str]:
    response = await manager.health.handle(Request("GET", path))
    return response.status, response.body.decode()


class Refusing:
    """Answers every list and watch of one resource with an error."""

    def __init__(self, inner: Transport, plural: str, code: int, reason: str) -> None:
        self._inner, self._plural = inner, plural
        body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{plural} refused"}
        self._answer = Response(code, Headers.of({"Content-Type": "application/json"}), json.dumps(body).encode())

    async def send(self, request: Request) -> Response:
        return self._answer if self._plural in request.target else await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        async def refuse(_: Request) -> Response:
            return self._answer

        return await (Direct(refuse) if self._plural in request.target else self._inner).stream(request)


# ------------------------------------------------------------------ start


@pytest.mark.spec("R-01", "R-02")
async def test_a_cache_that_cannot_sync_names_the_resource_and_the_reason(server: ApiServer, client: Client) -> None:
    refusing = Refusing(server.transport, "configmaps", 403, "Forbidden")
    poor = Client(refusing, credentials=client.caller._credentials)  # type: ignore[attr-defined]
    config = Configuration(cache=CacheSettings(sync_timeout=30))
    manager = Manager(poor, config=config).add(Controller(Secret, nothing, owns=[ConfigMap]))
    with pytest.raises(CacheNotSynced) as caught:
        await manager.serve(asyncio.Event())
    assert "not synced within 30 s: configmaps: configmaps refused" in str(caught.value)


@pytest.mark.spec("R-02", "R-29")
async def test_no_reconcile_runs_and_readiness_fails_before_the_caches_are_filled(
    server: ApiServer, client: Client
) -> None:
    seen: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        seen.append(ctx.request.name)

    await client.create(secret("a"))
    refusing = Refusing(server.transport, "configmaps", 503, "ServiceUnavailable")
    poor = Client(refusing, credentials=client.caller._credentials)  # type: ignore[attr-defined]
    manager = Manager(poor).add(Controller(Secret, reconcile, uses=[Use(ConfigMap, cached=True)]))
    stop = asyncio.Event()
    serving = asyncio.create_task(manager.serve(stop))
    await asyncio.sleep(20)
    assert await ask(manager, "/readyz") == (503, "not synced")
    assert await ask(manager, "/healthz") == (200, "ok")
    assert seen == []
    refusing._plural = "nothing"
    await asyncio.sleep(60)
    assert await ask(manager, "/readyz") == (200, "ok")
    assert seen == ["a"]
    stop.set()
    await serving


@pytest.mark.spec("R-26")
@pytest.mark.parametrize(
    ("dependency", "wrong"),
    [("ftp://x", "use tcp"), ("absent", "not a controller of this manager"), ("secret", "depends on itself")],
)
async def test_dependencies_that_can_never_be_met_are_refused(client: Client, dependency: str, wrong: str) -> None:
    manager = Manager(client).add(Controller(Secret, nothing, depends_on=[dependency]))
    with pytest.raises(DependencyError, match=wrong):
        await manager.serve(asyncio.Event())


@pytest.mark.spec("R-26")
async def test_no_controller_works_before_those_it_depends_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connects(address: str) -> bool:
        return asyncio.get_running_loop().time() >= 60

    async def reconcile(ctx: Context[Secret]) -> None:
        worked.append((ctx.obj.kind, asyncio.get_running_loop().time()))

    monkeypatch.setattr(dependencies, "_connects", connects)
    worked: list[tuple[str, float]] = []
    await client.create(secret("a"))
    here = ("default",)
    manager = Manager(client)
    manager.add(Controller(Secret, reconcile, name="late", namespaces=here, depends_on=["middle"]))
    manager.add(Controller(ConfigMap, nothing, name="middle", namespaces=here, depends_on=["early"]))
    manager.add(Controller(ConfigMap, nothing, name="early", namespaces=here, depends_on=["tcp://db:3306"]))
    async with manager.running():
        await asyncio.sleep(50)
        assert worked == []
        status, text = await ask(manager, "/readyz")
        assert status == 503
        assert sorted(text.split("; ")) == [
            "early waits for tcp://db:3306", "late waits for middle", "middle waits for early",
        ]  # fmt: skip
        await asyncio.sleep(20)
        assert [kind for kind, _ in worked] == ["Secret"]
        assert 60 <= worked[0][1] < 65
        assert await ask(manager, "/readyz") == (200, "ok")


def test_two_controllers_cannot_have_one_name() -> None:
    manager = Manager().add(Controller(Secret, nothing))
    with pytest.raises(ValueError, match="give this one a name"):
        manager.add(Controller(Secret, nothing))


# ------------------------------------------------------------------ running


@pytest.mark.spec("R-28", "R-29")
async def test_metrics_have_the_names_of_controller_runtime_and_of_our_documents(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply(config_map(ctx.request.name))

    async with Manager(client).add(Controller(Secret, reconcile, owns=[ConfigMap])).running() as manager:
        await client.create(secret("a"))
        await asyncio.sleep(1)
        status, text = await ask(manager, "/metrics")
    assert status == 200
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    by_controller = (("controller", "secret"),)
    both = (("controller", "secret"), ("name", "secret"))
    assert samples["controller_workqueue_adds_total", by_controller] == 1
    assert samples["controller_workqueue_depth", by_controller] == 0
    assert samples["controller_workqueue_retries_total", by_controller] == 0
    assert samples["controller_reconcile_errors_total", by_controller] == 0
    assert samples["controller_reconcile_time_seconds_count", by_controller] == 1
    assert samples["workqueue_adds_total", both] == 1
    assert samples["workqueue_depth", both] == 0
    assert samples["workqueue_queue_duration_seconds_count", both] == 1
    assert samples["controller_runtime_reconcile_total", (("controller", "secret"), ("result", "success"))] == 1
    assert samples["controller_runtime_max_concurrent_reconciles", by_controller] == 16
    applies = [value for (name, labels), value in samples.items() if name == "rest_client_requests_total"
               and ("method", "PATCH") in labels]  # fmt: skip
    assert applies == [1]
    assert samples["informer_objects", (("resource", "secrets"),)] == 1


@pytest.mark.spec("R-29")
async def test_health_checks_can_be_listed_run_alone_and_excluded(client: Client) -> None:
    manager = Manager(client)
    assert await ask(manager, "/readyz?verbose") == (
        503,
        "[+]ping ok\n[+]shutdown ok\n[-]caches failed: not synced\n[+]dependencies ok\nreadyz check failed\n",
    )
    assert await ask(manager, "/readyz/caches") == (503, "not synced")
    assert await ask(manager, "/readyz?exclude=caches") == (200, "ok")
    assert (await ask(manager, "/readyz/absent"))[0] == 404
    assert (await ask(manager, "/debug/profile"))[0] == 404  # off unless asked for


@pytest.mark.spec("R-04", "R-29")
async def test_health_says_stopping_while_queued_keys_are_finished(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        await asyncio.sleep(10)

    await client.create(secret("a"))
    manager = Manager(client).add(Controller(Secret, reconcile))
    stop = asyncio.Event()
    serving = asyncio.create_task(manager.serve(stop))
    await asyncio.sleep(1)
    stop.set()
    await asyncio.sleep(1)
    assert await ask(manager, "/healthz") == (503, "stopping")
    await serving


# ------------------------------------------------------------------ leadership


@pytest.mark.spec("R-27")
async def test_only_the_leader_works_and_another_takes_over(server: ApiServer, client: Client) -> None:
    worked: list[tuple[str, str]] = []

    def make(name: str, wire: Transport) -> Manager:
        async def reconcile(ctx: Context[Secret]) -> None:
            worked.append((name, ctx.request.name))

        own = Client(wire, credentials=client.caller._credentials)  # type: ignore[attr-defined]
        election = LeaderElection(name="op", identity=name)
        return Manager(own, leader_election=election).add(Controller(Secret, reconcile))

    wire = Unreliable(server.transport, 0.0)
    first, second = make("first", wire), make("second", server.transport)
    stop = asyncio.Event()
    serving = [asyncio.create_task(first.serve(stop))]
    await asyncio.sleep(1)
    serving.append(asyncio.create_task(second.serve(stop)))
    await client.create(secret("a"))
    await asyncio.sleep(5)
    assert worked == [("first", "a")]
    wire.away = True
    await asyncio.sleep(60)
    with pytest.raises(LeadershipLost):
        await serving[0]
    assert worked == [("first", "a"), ("second", "a")]
    stop.set()
    with contextlib.suppress(asyncio.CancelledError):
        await serving[1]


@pytest.mark.spec("R-04", "R-27")
async def test_a_standby_process_stops_at_once(client: Client) -> None:
    async with LeaderElector(client, "op", "default", identity="other").leading():
        manager = Manager(client, leader_election=LeaderElection(name="op")).add(Controller(Secret, nothing))
        stop = asyncio.Event()
        serving = asyncio.create_task(manager.serve(stop))
        await asyncio.sleep(30)
        assert await ask(manager, "/readyz") == (200, "ok")  # warm caches
        stop.set()
        began = asyncio.get_running_loop().time()
        await serving
        assert asyncio.get_running_loop().time() == began


@pytest.mark.virtual
async def test_a_small_manager_does_not_freeze_its_memory(client: Client) -> None:
    gc.unfreeze()  # what earlier tests froze would make the count fall as it dies
    async with Manager(client).add(Controller(Secret, nothing)).running():
        await asyncio.sleep(1)
    assert gc.get_freeze_count() == 0
