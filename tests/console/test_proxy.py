"""`/k8s/`: the API as it is, with the caller's credentials, and nothing that could be more than data in a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.client.config import Impersonation
from konverge.client.credentials import Credential
from konverge.console import Console, Identity, Owner
from konverge.console.proxy import STREAMS
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import ADDRESS
from konverge.wire import websocket
from konverge.wire.errors import ConnectFailed
from konverge.wire.in_process import Direct
from konverge.wire.message import Handler, Headers, Request, Response, Sink, Stream, UpgradingTransport
from konverge.wire.pool import ConnectionPool
from konverge.wire.server import Server
from konverge.wire.websocket import WebSocket
from konverge.wire.websocket_frames import Opcode
from tests.console.office import SPACE, Browser, an_office, decoded, in_front_of, read_lines
from tests.sim.conftest import pod
from tests.sim.processes.support import is_running, until
from tests.wire.support import serving
from tests.wire.websocket_client import talking

pytestmark = pytest.mark.spec("C-03")

MAPS = "/k8s/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Upstream:
    """An API server that remembers what it was asked, and says what the test wants."""

    def __init__(self, *answers: Response) -> None:
        self.requests: list[Request] = []
        self._answers = list(answers)

    async def handle(self, request: Request) -> Response:
        if "selfsubjectreviews" in request.target:
            return Response(201, Headers(), b'{"status": {"userInfo": {"username": "jane"}}}')
        self.requests.append(request)
        return self._answers.pop(0) if self._answers else Response(200, Headers(), b"{}")


async def signed_in(upstream: Upstream, transport: UpgradingTransport | None = None) -> Browser:
    browser = Browser(Console(transport or Direct(upstream.handle)))
    assert (await browser.sign_in(token="janes-token")).status == 200
    return browser


async def test_reads_and_writes_are_those_of_the_api() -> None:
    async with an_office() as office:
        made = await office.send("POST", f"{MAPS}?fieldManager=me", config_map("a", k="v"))
        assert (made.status, decoded(made)["metadata"]["managedFields"][0]["manager"]) == (201, "me")
        patch = await office.send(
            "PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, content_type="application/merge-patch+json"
        )
        assert decoded(patch)["data"] == {"k": "w"}
        dry = await office.send("DELETE", f"{MAPS}/a?dryRun=All")
        assert dry.status == 200
        table = await office.send("GET", MAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert decoded(table)["kind"] == "Table"
        missing = await office.send("GET", f"{MAPS}/none")
        assert (missing.status, decoded(missing)["kind"]) == (404, "Status")
        direct = await office.server.transport.send(
            Request(
                "GET", f"{MAPS}/a".removeprefix("/k8s"), Headers.of({"authorization": f"Bearer {office.server.token}"})
            )
        )
        assert (await office.send("GET", f"{MAPS}/a")).body == direct.body


async def test_a_caller_can_do_what_the_cluster_allows_and_nothing_more() -> None:
    async with an_office() as office:
        await office.send("POST", MAPS, config_map("a"))
        reader = office.another()
        assert (
            await reader.sign_in(token=await office.account("jane", "get", resources=("configmaps",)))
        ).status == 200
        assert (await reader.send("GET", f"{MAPS}/a")).status == 200
        for method, path in (("GET", MAPS), ("DELETE", f"{MAPS}/a"), ("GET", "/k8s/api/v1/secrets")):
            answer = await reader.send(method, path)
            assert (answer.status, "jane" in decoded(answer)["message"]) == (403, True)
        assert (await office.send("GET", f"{MAPS}/a")).status == 200


async def test_a_watch_is_streamed_as_it_comes() -> None:
    async with an_office() as office:
        stream = await office.stream(f"{MAPS}?watch=true&fieldSelector=metadata.name%3Da")
        await office.send("POST", MAPS, config_map("a"))
        assert [event["type"] for event in await read_lines(stream, 1)] == ["ADDED"]


async def test_only_chosen_header_fields_reach_the_api_server() -> None:
    upstream = Upstream()
    browser = await signed_in(upstream)
    await browser.send(
        "GET",
        "/k8s/api/v1/pods",
        accept="application/json",
        impersonate_user="root",
        impersonate_group="system:masters",
        x_remote_user="root",
        x_forwarded_for="1.2.3.4",
        proxy_authorization="Basic eA==",
        te="trailers",
        transfer_encoding="chunked",
        if_none_match='"1"',
    )
    fields = {name for name, _ in upstream.requests[0].headers}
    assert fields == {"accept", "if-none-match", "user-agent", "authorization"}
    assert upstream.requests[0].headers.get_all("authorization") == ["Bearer janes-token"]


async def test_only_chosen_header_fields_reach_the_browser() -> None:
    fields = {
        "content-type": "application/json",
        "set-cookie": "konverge-console=stolen",
        "access-control-allow-origin": "*",
        "content-security-policy": "script-src *",
        "etag": '"7"',
        "warning": '299 - "old"',
        "location": "https://elsewhere.example.com",
    }
    browser = await signed_in(Upstream(Response(200, Headers.of(fields), b"{}")))
    headers = (await browser.send("GET", "/k8s/api/v1/pods")).headers
    assert (headers.get("etag"), headers.get("warning")) == ('"7"', '299 - "old"')
    for name in ("set-cookie", "access-control-allow-origin", "location"):
        assert name not in headers
    assert headers.get_all("content-security-policy") == ["default-src 'none'; frame-ancestors 'none'; sandbox"]
    assert headers.get("x-content-type-options") == "nosniff"


@pytest.mark.spec("C-04")
@pytest.mark.parametrize(
    ("media", "shown"),
    [
        ("text/html", "application/octet-stream"),
        ("text/html; charset=utf-8", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ("application/json;stream=watch", "application/json;stream=watch"),
        ("text/plain", "text/plain"),
        ("application/merge-patch+json", "application/merge-patch+json"),
    ],
)
async def test_no_answer_of_the_cluster_is_a_page_or_a_script(media: str, shown: str) -> None:
    answered = Response(200, Headers.of({"content-type": media}), b"<script>alert(1)</script>")
    browser = await signed_in(Upstream(answered))
    answer = await browser.send("GET", "/k8s/apis/metrics.k8s.io/v1beta1")
    assert (answer.headers.get("content-type"), answer.body) == (shown, b"<script>alert(1)</script>")


@pytest.mark.spec("C-04")
@pytest.mark.parametrize(
    "path",
    [
        "/k8s/api/v1/namespaces/default/services/web/proxy/",
        "/k8s/api/v1/namespaces/default/pods/web/proxy",
        "/k8s/api/v1/nodes/n1/proxy/logs",
        "/k8s/api/v1/namespaces/default/pods/web/%70roxy/x",
    ],
)
async def test_pages_of_other_programs_are_not_shown_under_our_origin(path: str) -> None:
    upstream = Upstream()
    answer = await (await signed_in(upstream)).send("GET", path)
    assert answer.status == 403
    assert not upstream.requests


async def test_an_object_called_proxy_is_an_object() -> None:
    upstream = Upstream()
    browser = await signed_in(upstream)
    for path in ("/k8s/api/v1/namespaces/proxy/pods/proxy", "/k8s/apis/apps/v1/namespaces/a/deployments/proxy"):
        assert (await browser.send("GET", path)).status == 200
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/k8s/../console/v1/session",
        "/k8s/api/../../admin",
        "/k8s/api/%2e%2e/%2E%2e/admin",
        "/k8s//evil.example.com/api",
        "/k8s/api//v1",
        "/k8s/api/v1\\pods",
        "/k8s/api/%5c",
    ],
)
async def test_a_path_that_servers_read_differently_is_refused(path: str) -> None:
    upstream = Upstream()
    assert (await (await signed_in(upstream)).send("GET", path)).status == 400
    assert not upstream.requests


async def test_other_methods_are_refused() -> None:
    upstream = Upstream()
    browser = await signed_in(upstream)
    for method in ("OPTIONS", "TRACE", "CONNECT"):
        assert (await browser.send(method, "/k8s/api/v1/pods")).status == 405
    assert not upstream.requests


class Renewable:
    """Credentials whose first token has expired."""

    def __init__(self) -> None:
        self.held = Credential("Bearer old")

    def current(self) -> Credential:
        return self.held

    async def renew(self, rejected: Credential | None = None) -> Credential:
        self.held = Credential("Bearer new") if self.held.authorization == "Bearer old" else self.held
        return self.held


async def test_a_refused_credential_is_renewed_once_and_the_request_repeated() -> None:
    upstream = Upstream(Response(401), Response(200, Headers(), b"{}"), Response(401))
    owner = Owner(Identity(Direct(upstream.handle), Renewable(), Impersonation(user="jane", groups=("dev",))))
    browser = Browser(Console(Direct(upstream.handle), owner=owner))
    await browser.sign_in(token=owner.key)
    assert (await browser.send("POST", "/k8s/api/v1/namespaces", {"x": 1})).status == 200
    assert [request.headers.get("authorization") for request in upstream.requests] == ["Bearer old", "Bearer new"]
    assert upstream.requests[1].body == b'{"x": 1}'
    assert upstream.requests[1].headers.get("impersonate-user") == "jane"
    assert (await browser.send("GET", "/k8s/api/v1/pods")).status == 401
    assert len(upstream.requests) == 3


class Switched:
    """A transport whose other end the test changes."""

    def __init__(self, handler: Handler) -> None:
        self.inner: Direct | None = Direct(handler)

    def _reached(self) -> Direct:
        if self.inner is None:
            raise ConnectFailed("refused")
        return self.inner

    async def send(self, request: Request) -> Response:
        return await self._reached().send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._reached().stream(request)

    async def upgrade(self, request: Request) -> Response:
        return await self._reached().upgrade(request)


async def test_an_api_server_that_is_away_is_said() -> None:
    transport = Switched(Upstream().handle)
    browser = Browser(Console(transport))
    assert (await browser.sign_in(token="janes-token")).status == 200
    transport.inner = None
    for path in ("/k8s/api/v1/pods", "/console/v1/overview", "/console/v1/tree?kind=v1/Pod&namespace=a&name=b"):
        answer = await browser.send("GET", path)
        assert (answer.status, decoded(answer)["reason"], decoded(answer)["code"]) == (503, "ServiceUnavailable", 503)


async def test_answers_under_way_are_bounded_and_those_that_ended_do_not_count() -> None:
    async def endless(request: Request) -> Response:
        async def produce(sink: Sink) -> None:
            await asyncio.get_running_loop().create_future()

        return Response(200, Headers(), producer=produce)

    transport = Switched(Upstream().handle)
    browser = Browser(Console(transport))
    await browser.sign_in(token="janes-token")
    transport.inner = Direct(endless)
    streams = [await browser.stream("/k8s/api/v1/pods?watch=true") for _ in range(STREAMS)]
    refused = await browser.send("GET", "/k8s/api/v1/pods")
    assert (refused.status, decoded(refused)["reason"]) == (429, "TooManyRequests")
    await asyncio.sleep(0)  # the producers begin
    await streams.pop().aclose()
    streams.append(await browser.stream("/k8s/api/v1/pods?watch=true"))
    assert streams[-1].status == 200
    await asyncio.sleep(0)
    for stream in streams:
        await stream.aclose()
    await transport.inner.aclose()


# ------------------------------------------------------------------ WebSockets


@asynccontextmanager
async def listening(browser: Browser) -> AsyncIterator[tuple[int, str]]:
    """The console on a socket: its port, and the fields that a browser sends with a handshake."""
    async with browser.console.serving() as (_, port):
        yield port, f"cookie: {browser.cookie}\r\norigin: http://x\r\n"


async def messages(talker: Any) -> tuple[list[bytes], int]:
    """All messages, and the code of the end."""
    received: list[bytes] = []
    while True:
        opcode, data = await talker.receive()
        if opcode is Opcode.CLOSE:
            return received, int.from_bytes(data[:2], "big")
        received.append(data)


async def test_a_watch_as_a_websocket_is_a_message_per_event() -> None:
    lines = [b'{"type":"ADDED"}', b'{"type":"MODIFIED"}']

    async def produce(sink: Sink) -> None:
        for piece in (lines[0] + b"\n" + lines[1][:5], lines[1][5:], b"\n"):
            sink.write(piece)
            await sink.drain()

    upstream = Upstream(Response(200, Headers(), producer=produce))
    browser = await signed_in(upstream)
    browser.console._anywhere = True
    async with (
        listening(browser) as (port, fields),
        talking(port, "/k8s/api/v1/pods?watch=true", extra=fields) as talker,
    ):
        assert talker.status == 101
        assert await messages(talker) == (lines, 1000)
    assert upstream.requests[0].target == "/api/v1/pods?watch=true"
    assert "upgrade" not in upstream.requests[0].headers


async def test_a_refusal_is_the_last_message_and_its_status_the_code() -> None:
    status = b'{"kind": "Status", "code": 410}'
    browser = await signed_in(Upstream(Response(410, Headers(), status)))
    browser.console._anywhere = True
    async with listening(browser) as (port, fields), talking(port, "/k8s/api/v1/pods?watch=1", extra=fields) as talker:
        assert await messages(talker) == ([status], 4410)


async def test_a_websocket_of_another_origin_is_refused() -> None:
    upstream = Upstream()
    browser = await signed_in(upstream)
    browser.console._anywhere = True
    for origin in ("origin: http://evil.example.com\r\n", ""):
        for path in ("/k8s/api/v1/pods?watch=1", "/k8s/api/v1/namespaces/a/pods/b/exec"):
            fields = f"cookie: {browser.cookie}\r\n{origin}"
            async with browser.console.serving() as (_, port), talking(port, path, extra=fields) as talker:
                assert talker.status == 403
    assert not upstream.requests


class Shell:
    """A container with a WebSocket: it repeats what it hears, and says who asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def handle(self, request: Request) -> Response:
        if "selfsubjectreviews" in request.target:
            return Response(201, Headers(), b'{"status": {"userInfo": {"username": "jane"}}}')
        self.requests.append(request)
        if "forbidden" in request.target:
            return Response(403, Headers.of({"content-type": "application/json"}), b'{"kind": "Status"}')

        async def talk(socket: WebSocket) -> None:
            while (data := await socket.receive()) is not None:
                await socket.send(b"heard " + data)
                if data == b"bye":
                    return

        return websocket.accept(request, websocket.choose(request, ("v5.channel.k8s.io",)), talk)


@asynccontextmanager
async def transports(shell: Shell, sort: str) -> AsyncIterator[UpgradingTransport]:
    if sort == "in process":
        yield Direct(shell.handle)
        return
    async with serving(shell.handle) as server, ConnectionPool(f"http://127.0.0.1:{server.port}") as pool:
        yield pool


@pytest.mark.spec("C-05")
@pytest.mark.parametrize("sort", ["in process", "over sockets"])
async def test_a_terminal_is_handed_on_in_both_directions(sort: str) -> None:
    shell = Shell()
    async with transports(shell, sort) as transport:
        browser = Browser(Console(transport, anywhere=True))
        assert (await browser.sign_in(token="janes-token")).status == 200
        path = "/k8s/api/v1/namespaces/a/pods/b/exec?command=sh&stdin=true"
        hidden = "base64url.bearer.authorization.k8s.io.cm9vdA"
        protocols = (hidden, "v5.channel.k8s.io")
        async with listening(browser) as (port, fields), talking(port, path, *protocols, extra=fields) as talker:
            assert talker.status == 101
            assert "sec-websocket-protocol: v5.channel.k8s.io" in talker.head.lower()
            talker.send(b"hello")
            assert await talker.receive() == (Opcode.BINARY, b"heard hello")
            talker.send(b"x" * 300_000)
            assert (await talker.receive())[1] == b"heard " + b"x" * 300_000
            talker.send(b"bye")
            assert await messages(talker) == ([b"heard bye"], 1000)
    request = shell.requests[0]
    assert request.headers.get_all("authorization") == ["Bearer janes-token"]
    assert hidden not in request.headers.get("sec-websocket-protocol")
    assert "cookie" not in request.headers


@pytest.mark.spec("C-05")
@pytest.mark.parametrize("sort", ["in process", "over sockets"])
async def test_a_terminal_that_the_cluster_refuses_is_an_ordinary_refusal(sort: str) -> None:
    shell = Shell()
    async with transports(shell, sort) as transport:
        browser = Browser(Console(transport, anywhere=True))
        await browser.sign_in(token="janes-token")
        path = "/k8s/api/v1/namespaces/forbidden/pods/b/exec"
        async with listening(browser) as (port, fields), talking(port, path, extra=fields) as talker:
            assert talker.status == 403
            assert await talker.reader.readexactly(18) == b'{"kind": "Status"}'


@pytest.mark.spec("C-05")
async def test_a_browser_that_goes_ends_the_terminal_at_the_server() -> None:
    shell = Shell()
    server: Server
    async with serving(shell.handle) as server, ConnectionPool(f"http://127.0.0.1:{server.port}") as pool:
        browser = Browser(Console(pool, anywhere=True))
        await browser.sign_in(token="janes-token")
        async with listening(browser) as (port, fields):
            async with talking(port, "/k8s/api/v1/namespaces/a/pods/b/attach", extra=fields) as talker:
                assert talker.status == 101
            async with asyncio.timeout(10):
                while pool._upgraded:
                    await asyncio.sleep(0.01)


@pytest.mark.spec("C-05")
async def test_a_port_of_a_pod_is_forwarded() -> None:
    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    async with Cluster(controllers=False, nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        server = await asyncio.start_server(upper, "127.9.9.9", 0)
        port = server.sockets[0].getsockname()[1]
        await cluster.client.create(pod("web", annotations={ADDRESS: "127.9.9.9"}))
        await until(cluster.client, "web", is_running)
        office.console._anywhere = True
        path = f"/k8s/api/v1/namespaces/{SPACE}/pods/web/portforward?ports={port}"
        async with listening(office) as (console, fields):
            async with talking(console, path, "v4.channel.k8s.io", extra=fields) as talker:
                assert talker.status == 101
                number = port.to_bytes(2, "little")
                assert [(await talker.receive())[1] for _ in range(2)] == [b"\x00" + number, b"\x01" + number]
                talker.send(b"\x00over the console\n")
                assert (await talker.receive())[1] == b"\x00OVER THE CONSOLE\n"
            other = office.another()
            await other.sign_in(token=await office.account("jane", "get", "list"))
            fields = f"cookie: {other.cookie}\r\norigin: http://x\r\n"
            async with talking(console, path, "v4.channel.k8s.io", extra=fields) as talker:
                assert talker.status == 403, "she may read pods, and nothing more"
        server.close()
        await server.wait_closed()


async def test_json_stays_json_whatever_is_in_it() -> None:
    hostile = "</script><script>alert(1)</script>\u2028\u202e"
    async with an_office() as office:
        await office.send("POST", MAPS, config_map("a", k=hostile))
        answer = await office.send("GET", f"{MAPS}/a")
        assert json.loads(answer.body)["data"]["k"] == hostile
        assert answer.headers.get("content-type").startswith("application/json")
