"""pods/proxy and services/proxy: requests reach what listens at a pod's address, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import ADDRESS
from konverge.sim.kubelet.proxy_links import Links
from konverge.wire import websocket
from konverge.wire.message import Headers, Request, Response, Sink
from konverge.wire.pool import ConnectionPool
from konverge.wire.server import Server
from konverge.wire.tls import TlsOptions
from konverge.wire.websocket import WebSocket
from tests.sim.conftest import SPACE, pod
from tests.sim.processes.support import is_running, until
from tests.wire.test_tls import server_tls
from tests.wire.websocket_client import talking

pytestmark = pytest.mark.spec("S-26")

HERE = "127.9.9.8"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
SERVICES = f"/api/v1/namespaces/{SPACE}/services"


async def behind(request: Request) -> Response:
    """What a pod serves: an echo, a page, redirects, a stream, a WebSocket."""
    path = request.target.partition("?")[0]
    if path == "/page":
        page = '<p>&lt;<a href="/next?x=1">n</a><a href="https://far.example/x">f</a><img src="pic.png"></p>'
        return Response(200, Headers.of({"content-type": "text/html; charset=utf-8"}), page.encode())
    if path == "/elsewhere":
        return Response(302, Headers.of({"location": "/there/"}))
    if path == "/stream":

        async def produce(sink: Sink) -> None:
            for number in range(3):
                sink.write(b"%d\n" % number)
                await sink.drain()

        return Response(200, producer=produce)
    if path == "/socket":
        if not websocket.is_asked_for(request):
            return Response(426, body=b"a WebSocket, please")

        async def talk(socket: WebSocket) -> None:
            while (data := await socket.receive()) is not None:
                await socket.send(data[::-1])

        return websocket.accept(request, "", talk)
    seen = {"method": request.method, "target": request.target, "body": request.body.decode()}
    body = json.dumps({**seen, "headers": dict(request.headers)}).encode()
    return Response(201, Headers.of({"content-type": "application/json", "x-app": "yes"}), body)


@asynccontextmanager
async def serving(
    handler: Callable[[Request], Awaitable[Response]] = behind, **options: Any
) -> AsyncIterator[tuple[Cluster, ConnectionPool, int]]:
    """A pod `web` whose address is listened on, and a client of the cluster's API server."""
    async with Cluster(controllers=False, nodes=1) as cluster, Server(handler) as server:
        await server.start(HERE, **options)
        ports = [{"name": "http", "containerPort": server.port}]
        containers = [{"name": "side", "image": "a"}, {"name": "main", "image": "b", "ports": ports}]
        await cluster.client.create(pod("web", annotations={ADDRESS: HERE}, containers=containers))
        await until(cluster.client, "web", is_running)
        async with ConnectionPool(await cluster.listen(), tls=TlsOptions(insecure=True)) as pool:
            yield cluster, pool, server.port


async def ask(cluster: Cluster, pool: ConnectionPool, target: str, method: str = "GET", **more: Any) -> Response:
    headers = {"authorization": f"Bearer {cluster.server.token}", **more.pop("headers", {})}
    return await pool.send(Request(method, target, Headers.of(headers), more.pop("body", b"")))


async def test_the_server_behind_gets_the_request_without_credentials() -> None:
    async with serving() as (cluster, pool, _):
        headers = {"x-mine": "1", "cookie": "a=b", "x-remote-user": "admin", "connection": "x-hop", "x-hop": "1"}
        target = f"{PODS}/web/proxy/a%20b/c?d=e&d=f"
        answer = await ask(cluster, pool, target, "PUT", headers=headers, body=b"hello")
        assert answer.status == 201
        assert answer.headers.get("x-app") == "yes"
        seen = json.loads(answer.body)
        assert (seen["method"], seen["target"], seen["body"]) == ("PUT", "/a%20b/c?d=e&d=f", "hello")
        assert seen["headers"]["x-mine"] == "1"
        assert seen["headers"]["cookie"] == "a=b"
        assert seen["headers"]["x-forwarded-uri"] == f"{PODS}/web/proxy/a%20b/c"
        assert not {"authorization", "x-remote-user", "x-hop", "impersonate-user"} & seen["headers"].keys()


@pytest.mark.parametrize("method", ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"])
async def test_each_method_reaches_the_server_behind(method: str) -> None:
    async with serving() as (cluster, pool, _):
        assert json.loads((await ask(cluster, pool, f"{PODS}/web/proxy/", method)).body)["method"] == method


async def test_impersonation_is_not_passed_on() -> None:
    async with serving() as (cluster, pool, _):
        headers = {"impersonate-user": "system:admin", "impersonate-group": "system:masters"}
        seen = json.loads((await ask(cluster, pool, f"{PODS}/web/proxy/", headers=headers)).body)
        assert not [name for name in seen["headers"] if name.startswith("impersonate")]


async def test_the_root_is_asked_for_with_a_slash() -> None:
    async with serving() as (cluster, pool, _):
        answer = await ask(cluster, pool, f"{PODS}/web/proxy?a=b")
        assert (answer.status, answer.headers.get("location")) == (301, f"{PODS}/web/proxy/?a=b")
        assert json.loads((await ask(cluster, pool, f"{PODS}/web/proxy", "POST")).body)["target"] == "/"
        assert json.loads((await ask(cluster, pool, f"{PODS}/web/proxy/")).body)["target"] == "/"


async def test_a_pod_may_be_called_proxy() -> None:
    async with serving() as (cluster, pool, port):
        await cluster.client.create(pod("proxy", annotations={ADDRESS: HERE}))
        await until(cluster.client, "proxy", is_running)
        target = f"{PODS}/proxy:{port}/proxy"
        assert json.loads((await ask(cluster, pool, f"{target}/proxy/x")).body)["target"] == "/proxy/x"
        assert (await ask(cluster, pool, target)).headers.get("location") == f"{target}/"


async def test_links_of_pages_and_redirects_lead_through_the_proxy() -> None:
    async with serving() as (cluster, pool, port):
        proxy, host = f"{PODS}/web:{port}/proxy", {"host": "api.example:6443"}
        moved = await ask(cluster, pool, f"{proxy}/elsewhere", headers=host)
        assert moved.headers.get("location") == f"{proxy}/there/"
        page = (await ask(cluster, pool, f"{proxy}/page", headers=host)).body.decode()
        assert page == (
            f'<p>&lt;<a href="{proxy}/next?x=1">n</a><a href="https://far.example/x">f</a><img src="pic.png"></p>'
        )


@pytest.mark.parametrize(
    ("link", "outside"),
    [
        ("/x/", "/p/proxy/x/"),
        ("/p/proxy/x", "/p/proxy/x"),
        ("http://10.0.0.1:80/x?q#f", "/p/proxy/x?q#f"),
        ("//api/x", "//api/p/proxy/x"),
        ("https://api/x", "https://api/p/proxy/x"),
        ("http://other/x", "http://other/x"),
        ("x/y", "x/y"),
        ("#f", "#f"),
        ("http://[bad/", "http://[bad/"),
    ],
)
def test_which_links_are_changed(link: str, outside: str) -> None:
    assert Links("/p/proxy", "api", "10.0.0.1:80").outside(link) == outside


def test_the_rest_of_a_page_stays_as_it_is() -> None:
    links = Links("/p/proxy", "api", "10.0.0.1:80")
    page = (
        "<!DOCTYPE html><ScRiPt>if (a<b) {'<a href=\"/q\">'}</ScRiPt><!-- <a href='/c'> --><A HREF=/x data-y>&amp;</A>"
    )
    assert links.in_page(page) == page.replace("<A HREF=/x data-y>", '<a href="/p/proxy/x" data-y>')


async def test_answers_are_passed_on_as_they_come() -> None:
    async with serving() as (cluster, pool, _):
        answer = await ask(cluster, pool, f"{PODS}/web/proxy/stream")
        assert (answer.status, answer.body) == (200, b"0\n1\n2\n")
        head = await ask(cluster, pool, f"{PODS}/web/proxy/page", "HEAD")
        assert (head.status, head.body) == (200, b"")


async def test_a_web_socket_goes_through() -> None:
    async with serving() as (cluster, _, _):
        url = urlsplit(await cluster.listen())
        token = f"authorization: Bearer {cluster.server.token}\r\n"
        async with talking(url.port or 0, f"{PODS}/web/proxy/socket", extra=token) as talker:
            assert talker.status == 101
            for text in (b"abc", b"x" * 70_000):
                talker.send(text)
                assert (await talker.receive())[1] == text[::-1]


async def test_a_refused_upgrade_is_passed_on() -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, Headers.of({"x-why": "no"}), b"not you")

    async with serving(refuse) as (cluster, _, _):
        url = urlsplit(await cluster.listen())
        token = f"authorization: Bearer {cluster.server.token}\r\n"
        async with talking(url.port or 0, f"{PODS}/web/proxy/socket", extra=token) as talker:
            assert talker.status == 403
            assert "x-why: no" in talker.head
            assert await talker.reader.readexactly(7) == b"not you"


async def test_https_behind() -> None:
    async with serving(ssl=server_tls([HERE])) as (cluster, pool, port):
        answer = await ask(cluster, pool, f"{PODS}/https:web:{port}/proxy/x")
        assert json.loads(answer.body)["target"] == "/x"


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        (f"{PODS}/web:1/proxy/", 503, f"error trying to reach service: dial tcp {HERE}:1: connect: connection refused"),
        (f"{PODS}/web:http/proxy/", 503, "error trying to reach service: dial tcp: lookup tcp/http: unknown port"),
        (f"{PODS}/ftp:web:1/proxy/", 400, 'invalid pod request "ftp:web:1"'),
        (f"{PODS}/a:b:c:d/proxy/", 400, 'invalid pod request "a:b:c:d"'),
        (f"{PODS}/none/proxy/", 404, 'pods "none" not found'),
        (f"{PODS}/far/proxy/", 400, "address not allowed"),
        (f"{SERVICES}/none:80/proxy/", 404, 'services "none" not found'),
        (f"{SERVICES}/svc:81/proxy/", 503, 'no service port 81 found for service "svc"'),
        (f"{SERVICES}/svc:http/proxy/", 503, 'no endpoints available for service "svc"'),
    ],
)
async def test_what_cannot_be_reached(target: str, status: int, text: str) -> None:
    async with serving() as (cluster, pool, _):
        await cluster.client.create(pod("far", annotations={ADDRESS: "192.0.2.1"}))
        await until(cluster.client, "far", is_running)
        await cluster.client.create(service())
        answer = await ask(cluster, pool, target)
        assert (answer.status, json.loads(answer.body)["message"]) == (status, text)


def service() -> Service:
    spec = {"ports": [{"name": "http", "port": 80}]}
    whole = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": SPACE}, "spec": spec}
    return from_dict(Service, whole)


def endpoints(name: str, port: int, **endpoint: Any) -> EndpointSlice:
    target = {"kind": "Pod", "namespace": SPACE, "name": "web"}
    labels = {"kubernetes.io/service-name": "svc"}
    return from_dict(
        EndpointSlice,
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": SPACE, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port}],
            "endpoints": [{"addresses": [HERE], "targetRef": target, "conditions": {"ready": True}, **endpoint}],
        },
    )


@pytest.mark.parametrize("name", ["svc:80", "svc:http", "http:svc:80"])
async def test_a_service_leads_to_a_ready_pod(name: str) -> None:
    async with serving() as (cluster, pool, port):
        await cluster.client.create(service())
        await cluster.client.create(endpoints("good", port))
        answer = await ask(cluster, pool, f"{SERVICES}/{name}/proxy/x")
        assert json.loads(answer.body)["target"] == "/x"


@pytest.mark.parametrize(
    "endpoint",
    [
        {"conditions": {"ready": False}},
        {"targetRef": None},
        {"targetRef": {"kind": "Pod", "namespace": "other", "name": "web"}},
        {"targetRef": {"kind": "Pod", "namespace": SPACE, "name": "gone"}},
        {"addresses": ["127.0.0.1"]},
    ],
)
async def test_a_slice_that_somebody_wrote_leads_nowhere_else(endpoint: dict[str, Any]) -> None:
    async with serving() as (cluster, pool, port):
        await cluster.client.create(service())
        await cluster.client.create(endpoints("bad", port, **endpoint))
        answer = await ask(cluster, pool, f"{SERVICES}/svc:80/proxy/x")
        assert answer.status == 503
        assert "no endpoints available" in answer.body.decode()


async def test_a_server_that_says_nonsense() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"what?\r\n\r\n")
        writer.close()

    async with serving() as (cluster, pool, _):
        server = await asyncio.start_server(nonsense, HERE, 0)
        port = server.sockets[0].getsockname()[1]
        for headers in ({}, {"connection": "upgrade", "upgrade": "x"}):
            answer = await ask(cluster, pool, f"{PODS}/web:{port}/proxy/", headers=headers)
            assert answer.status == 503
            assert "error trying to reach service" in answer.body.decode()
        server.close()
        await server.wait_closed()
