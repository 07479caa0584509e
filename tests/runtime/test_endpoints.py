"""Health, metrics and debug pages over HTTP: who gets which, and what the API server is asked about it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, TimedOut
from konverge.client.call import Call, Caller
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.observe import authorization
from konverge.observe.authorization import Authorizer
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.config import Configuration, ConfigurationError, ServingSettings, load_configuration
from konverge.runtime.endpoints import MetricsServer, asks_about_callers
from konverge.runtime.rbac import permissions
from konverge.wire import x509
from konverge.wire.message import Headers, Request, Response, Stream
from konverge.wire.pool import ConnectionPool
from tests.runtime.objects import config_map

LOOPBACK = ("127.0.0.1", 0)
REVIEWS = ("tokenreviews", "subjectaccessreviews")


class Reviewing:
    """Answers reviews, counts them, and passes everything else on."""

    def __init__(self, inner: Caller) -> None:
        self._inner = inner
        self.asked: list[tuple[str, Any]] = []
        self.error: Exception | None = None

    @property
    def near(self) -> bool:
        return self._inner.near

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)

    async def call(self, call: Call) -> Response:
        plural = call.resource.plural if call.resource else ""
        if plural not in REVIEWS:
            return await self._inner.call(call)
        if self.error is not None:
            raise self.error
        spec = json.loads(call.body)["spec"]
        self.asked.append((plural, spec))
        if plural == "tokenreviews":
            name = {"reader-token": "reader", "other-token": "other"}.get(spec["token"], "")
            status: Any = {"authenticated": bool(name), "user": {"username": name, "groups": ["g"], "uid": "1"}}
        else:
            allowed = spec["user"] == "reader" and spec["nonResourceAttributes"]["verb"] == "get"
            status = {"allowed": allowed}
        return Response(201, Headers(), json.dumps({"spec": spec, "status": status}).encode())


class ReviewingClient(Client):
    def __init__(self, inner: Client) -> None:
        self.reviews = Reviewing(inner.caller)
        self._use_caller(self.reviews, inner.mapper)
        self.server = inner.server


@pytest.fixture
def reviewing(client: Client) -> ReviewingClient:
    return ReviewingClient(client)


@asynccontextmanager
async def asking(port: int, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    async with ConnectionPool(f"{'https' if tls else 'http'}://127.0.0.1:{port}", tls=tls) as pool:

        async def ask(path: str, token: str = "", **fields: str) -> tuple[int, bytes]:
            headers = {"Host": "127.0.0.1", **fields, **({"Authorization": f"Bearer {token}"} if token else {})}
            response = await pool.send(Request("GET", path, Headers.of(headers)))
            return response.status, response.body

        yield ask


def unchecked() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def reconcile(ctx: Context[ConfigMap]) -> None: ...


def manager_of(client: Client, **options: Any) -> Manager:
    return Manager(client, check_permissions=False, **options).add(Controller(ConfigMap, reconcile, name="maps"))


# ------------------------------------------------------------------ metrics


@pytest.mark.spec("R-92")
async def test_metrics_over_tls_are_for_those_who_may_read_them(reviewing: ReviewingClient) -> None:
    manager = manager_of(reviewing, metrics=MetricsServer(address=LOOPBACK), health_address=LOOPBACK)
    async with manager.running():
        async with asking(manager.metrics_port, tls=unchecked()) as ask:
            assert (await ask("/metrics"))[0] == 401
            assert (await ask("/metrics", "bad-token"))[0] == 401
            assert (await ask("/metrics", "other-token"))[0] == 403
            status, text = await ask("/metrics", "reader-token")
            assert status == 200
            assert b"controller_runtime_reconcile_total" in text
        async with asking(manager.health_port) as ask:  # no way around it
            assert (await ask("/metrics"))[0] == 404
            assert (await ask("/healthz"))[0] == 200
            assert (await ask("/readyz"))[0] == 200
    paths = [spec["nonResourceAttributes"] for plural, spec in reviewing.reviews.asked if plural != "tokenreviews"]
    assert paths == [{"path": "/metrics", "verb": "get"}] * 2


@pytest.mark.spec("R-92")
async def test_decisions_are_remembered_for_a_while(
    reviewing: ReviewingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(authorization.clock, "monotonic", lambda: now)
    authorizer = Authorizer(reviewing)

    async def status(token: str, path: str = "/metrics") -> int:
        request = Request("GET", path, Headers.of({"Authorization": f"Bearer {token}"}))
        refusal = await authorizer.refusal(request)
        return 200 if refusal is None else refusal.status

    for _ in range(3):
        assert [await status(f"{who}-token") for who in ("reader", "other", "bad")] == [200, 403, 401]
    assert len(reviewing.reviews.asked) == 5  # three tokens, two decisions
    assert await status("reader-token", "/debug/reconciles") == 200
    assert len(reviewing.reviews.asked) == 6
    now += authorization.DENIED_FOR
    await status("other-token")
    assert len(reviewing.reviews.asked) == 7  # a right that was granted meanwhile is noticed
    now += authorization.USER_FOR
    await status("reader-token")
    assert [plural for plural, _ in reviewing.reviews.asked[7:]] == ["tokenreviews"]
    now += authorization.ALLOWED_FOR
    await status("reader-token")
    assert [plural for plural, _ in reviewing.reviews.asked[8:]] == ["tokenreviews", "subjectaccessreviews"]


async def test_a_review_that_fails_refuses_and_is_not_remembered(reviewing: ReviewingClient) -> None:
    authorizer = Authorizer(reviewing)
    request = Request("GET", "/metrics", Headers.of({"Authorization": "Bearer reader-token"}))
    reviewing.reviews.error = TimedOut("no answer")
    refusal = await authorizer.refusal(request)
    assert refusal is not None
    assert refusal.status == 500
    reviewing.reviews.error = None
    assert await authorizer.refusal(request) is None


async def test_what_is_remembered_has_a_bound(reviewing: ReviewingClient) -> None:
    authorizer = Authorizer(reviewing)
    for number in range(authorization.MAX_REMEMBERED + 10):
        await authorizer.refusal(Request("GET", "/metrics", Headers.of({"Authorization": f"Bearer {number}"})))
    assert len(authorizer._users._answers) == authorization.MAX_REMEMBERED
    assert not any("reader-token" in repr(key) for key in authorizer._users._answers)


@pytest.mark.spec("R-92")
async def test_a_mounted_certificate_is_shown_and_a_renewed_one_taken(
    reviewing: ReviewingClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konverge.runtime.endpoints.LOOK_EVERY", 0.01)
    authority = x509.authority("tests")

    def renew(name: str) -> bytes:
        pair = x509.issue(authority, name, x509.FOR_SERVERS, hosts=("127.0.0.1",)).pem
        for file, content in zip(("tls.crt", "tls.key"), pair, strict=True):
            (tmp_path / file).write_bytes(content)
        return pair[0]

    def shown(port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    first = renew("first").decode()
    metrics = MetricsServer(address=LOOPBACK, tls=tmp_path, authorize=False)
    manager = manager_of(reviewing, metrics=metrics)
    async with manager.running():
        assert await asyncio.to_thread(shown, manager.metrics_port) == first
        second = renew("second").decode()
        async with asyncio.timeout(60):
            while await asyncio.to_thread(shown, manager.metrics_port) != second:
                await asyncio.sleep(0.01)
        trusted = ssl.create_default_context(cadata=authority.pem[0].decode())
        async with asking(manager.metrics_port, tls=trusted) as ask:
            assert (await ask("/metrics"))[0] == 200


def test_tokens_are_not_taken_unencrypted() -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        MetricsServer(address=("", 8080), tls=False)
    assert MetricsServer(address=("127.0.0.1", 8080), tls=False).authorize


# ------------------------------------------------------------------ debug pages


@pytest.mark.spec("R-89")
async def test_debug_pages_are_off_unless_asked_for(reviewing: ReviewingClient) -> None:
    manager = manager_of(reviewing, health_address=LOOPBACK)
    async with manager.running(), asking(manager.health_port) as ask:
        assert (await ask("/debug/reconciles"))[0] == 404


@pytest.mark.spec("R-89")
async def test_on_loopback_the_story_is_open_but_not_to_other_sites(reviewing: ReviewingClient) -> None:
    manager = manager_of(reviewing, health_address=LOOPBACK, debug=True)
    async with manager.running(), asking(manager.health_port) as ask:
        await reviewing.create(config_map("a"))
        while not manager.story.reconciles(name="a"):
            await asyncio.sleep(0.01)
        status, text = await ask("/debug/reconciles?kind=ConfigMap&name=a&limit=5")
        assert status == 200
        page = json.loads(text)
        assert [(story["controller"], story["name"]) for story in page["reconciles"]] == [("maps", "a")]
        assert (await ask("/debug/reconciles", Host="rebound.example"))[0] == 403
        for query in ("limit=many", "limit=-1", "nmae=a"):
            assert (await ask(f"/debug/reconciles?{query}"))[0] == 400
    assert reviewing.reviews.asked == []


@pytest.mark.spec("R-89")
async def test_away_from_loopback_the_story_is_for_those_who_may_read_it(reviewing: ReviewingClient) -> None:
    manager = manager_of(reviewing, health_address=("0.0.0.0", 0), debug=True)
    assert asks_about_callers(manager)
    async with manager.running(), asking(manager.health_port) as ask:
        assert (await ask("/debug/reconciles"))[0] == 401
        assert (await ask("/debug/reconciles", "other-token"))[0] == 403
        assert (await ask("/debug/reconciles", "reader-token"))[0] == 200
        assert (await ask("/metrics"))[0] == 200  # as before


@pytest.mark.spec("R-89")
async def test_a_token_of_its_own_opens_the_story(reviewing: ReviewingClient) -> None:
    manager = manager_of(reviewing, health_address=LOOPBACK, debug=True)
    manager.debug_token = "only-this"
    async with manager.running(), asking(manager.health_port) as ask:
        assert (await ask("/debug/reconciles"))[0] == 401
        assert (await ask("/debug/reconciles", "reader-token"))[0] == 401
        assert (await ask("/debug/reconciles", "only-this"))[0] == 200


@pytest.mark.spec("R-89")
async def test_secured_metrics_secure_the_story_too(reviewing: ReviewingClient) -> None:
    metrics = MetricsServer(address=LOOPBACK, tls=False)
    manager = manager_of(reviewing, metrics=metrics, health_address=LOOPBACK, debug=True)
    async with manager.running():
        async with asking(manager.metrics_port) as ask:
            assert (await ask("/debug/reconciles"))[0] == 401
            assert (await ask("/debug/reconciles", "reader-token"))[0] == 200
        async with asking(manager.health_port) as ask:
            assert (await ask("/debug/reconciles"))[0] == 404


# ------------------------------------------------------------------ declarations


@pytest.mark.spec("R-94")
async def test_reviews_are_permissions_only_where_they_are_made(client: Client) -> None:
    def needed(**options: Any) -> bool:
        return asks_about_callers(Manager(client, **options))

    assert needed(metrics=MetricsServer())
    assert not needed(health_address=("", 8081))
    assert needed(health_address=("", 8081), debug=True)
    assert not needed(health_address=LOOPBACK, debug=True)
    assert not needed(metrics=MetricsServer(address=LOOPBACK, tls=True, authorize=False), debug=True)
    assert needed(metrics=MetricsServer(authorize=False), debug=True)
    with_token = Manager(client, health_address=("", 8081), debug=True)
    with_token.debug_token = "only-this"
    assert not asks_about_callers(with_token), "who has the token may see it"
    rules = {(p.group, p.resource, p.verb) for p in permissions([], reviews=True)}
    assert rules == {
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    assert permissions([]) == []


async def test_the_configuration_says_where_and_how(client: Client) -> None:
    environment = {
        "KONVERGE_METRICS_BIND_ADDRESS": ":9443",
        "KONVERGE_METRICS_SECURE": "true",
        "KONVERGE_METRICS_CERT_DIR": "/certs",
        "KONVERGE_DEBUG": "1",
    }
    manager = Manager(client, config=load_configuration(environment=environment))
    assert manager.metrics == MetricsServer(address=("", 9443), tls=Path("/certs"), authorize=True)
    assert manager.debug
    assert not Manager(client, config=load_configuration(environment=environment), debug=False).debug
    plain = Manager(client, config=Configuration(serving=ServingSettings(metrics_address="127.0.0.1:1")))
    assert plain.metrics == MetricsServer(address=("127.0.0.1", 1), tls=False, authorize=False)
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        load_configuration(environment={"KONVERGE_METRICS_BIND_ADDRESS": "8443"})


async def test_a_bound_manager_serves_as_declared_unless_switched_off(client: Client) -> None:
    declared = Manager(metrics=MetricsServer(), debug=True)
    assert declared.bound_to(client).metrics == MetricsServer()
    assert declared.bound_to(client).debug
    assert declared.bound_to(client, metrics=None).metrics is None
    assert declared.bound_to(client, metrics=None).bound_to(client).metrics is None
