"""The service as a whole: over sockets, its pages, its probes, its headers, its end."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from konverge.service import Service, ServiceOptions
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from konverge.wire.pool import ConnectionPool
from tests.service.desk import ALL, STREAM, Listener, a_desk

pytestmark = pytest.mark.spec("N-22")


class Broken:
    """A transport to nowhere."""

    async def send(self, request: Request) -> Response:
        raise ConnectFailed("refused")

    async def stream(self, request: Request) -> Stream:
        raise ConnectFailed("refused")


class Answering:
    """A transport to a server that says one thing."""

    def __init__(self, status: int, body: bytes) -> None:
        self._status, self._body = status, body

    async def send(self, request: Request) -> Response:
        return Response(self._status, None, self._body)

    async def stream(self, request: Request) -> Stream:
        raise ConnectFailed("refused")


async def ask(service: Service, path: str) -> Response:
    return await service.handle(Request("GET", path, Headers.of({"authorization": "Bearer t"})))


async def test_every_answer_has_security_headers() -> None:
    async with a_desk() as desk:
        for path in ("/docs", "/openapi.json", "/healthz", ALL, "/nowhere", "/static/style.css", f"{ALL}/nothing"):
            answer = await desk.send("GET", path)
            policy = answer.headers.get("content-security-policy")
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert answer.headers.get("x-content-type-options") == "nosniff"
            assert answer.headers.get("x-frame-options") == "DENY"
            assert answer.headers.get("referrer-policy") == "no-referrer"
            assert answer.headers.get("cache-control") in ("no-store", "no-cache")
            assert "access-control-allow-origin" not in answer.headers


async def test_unknown_paths_and_methods_are_refused() -> None:
    async with a_desk() as desk:
        for path in (
            "/nowhere",
            "/api/v1/nothing",
            "/api/v2/instances",
            "/static/../app.py",
            "/static/",
            "/static/x.js",
        ):
            assert (await desk.send("GET", path)).problem["status"] == 404
        wrong = await desk.send("PUT", ALL, {})
        assert (wrong.status, wrong.headers.get("allow")) == (405, "GET, POST")
        assert (await desk.send("POST", "/docs", {})).headers.get("allow") == "GET, HEAD"
        assert (await desk.send("OPTIONS", ALL)).status == 405


async def test_the_description_is_whole_and_true() -> None:
    async with a_desk() as desk:
        document = (await desk.send("GET", "/openapi.json", token="")).json
        assert document["openapi"].startswith("3.0")
        operations = [operation for path in document["paths"].values() for operation in path.values()]
        names = [item["operationId"] for item in operations]
        assert len(names) == len(set(names)) == 13
        schemas = document["components"]["schemas"]
        used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
        assert used <= set(schemas)
        spec = schemas["NacosSpec"]["properties"]
        assert set(spec["type"]["enum"]) == {"standalone", "cluster"}
        assert {"replicas", "resources", "database", "volume", "postgres"} <= set(spec)
        for path, methods in document["paths"].items():
            for operation in methods.values():
                inside = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
                assert inside == re.findall(r"\{(\w+)\}", path)
                assert operation["responses"]["default"]["content"].keys() == {"application/problem+json"}


async def test_answers_have_the_fields_that_are_described() -> None:
    async with a_desk() as desk:
        schemas = (await desk.send("GET", "/openapi.json")).json["components"]["schemas"]
        made = (await desk.create("shop")).json
        listed = (await desk.send("GET", ALL)).json
        problem = (await desk.send("GET", f"{ALL}/none")).json
        for name, shown in (("Instance", made), ("Instances", listed), ("ProblemDetails", problem)):
            assert set(shown) == set(schemas[name]["properties"])


async def test_the_page_of_the_api_needs_no_foreign_host_and_no_script() -> None:
    async with a_desk() as desk:
        page = (await desk.send("GET", "/docs", token="")).body.decode()
        assert "createInstance" in page
        assert "<script" not in page
        assert " style=" not in page
        assert re.findall(r'(?:src|href)="(?!/|#)', page) == []


async def test_the_page_of_the_api_says_where_the_service_is() -> None:
    async def page(**headers: str) -> str:
        return (await Service(Broken()).handle(Request("GET", "/docs", Headers.of(headers)))).body.decode()

    assert "URL=http://127.0.0.1:4321\n" in await page(Host="127.0.0.1:4321")
    proxied = await page(**{"Host": "nacos.example.com", "X-Forwarded-Proto": "https"})
    assert "URL=https://nacos.example.com\n" in proxied
    for hostile in ("<script>", "a b", "x/y", ""):
        assert "URL=http://HOST\n" in await page(Host=hostile)


@pytest.mark.virtual
async def test_probes_tell_alive_from_ready() -> None:
    async with a_desk() as desk:
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await desk.send("GET", path, token="")).body == b"ok"
    cut_off = Service(Broken())
    assert (await ask(cut_off, "/livez")).status == 200
    assert (await ask(cut_off, "/readyz")).status == 503
    assert (await ask(Service(Answering(401, b"{}")), "/readyz")).status == 200
    assert (await ask(Service(Answering(500, b"{}")), "/readyz")).status == 500


@pytest.mark.virtual
async def test_a_cluster_that_does_not_answer_is_a_problem_of_its_own() -> None:
    refused = await ask(Service(Broken()), ALL)
    assert (refused.status, refused.headers.get("retry-after")) == (503, "5")
    assert json.loads(refused.body)["reason"] == "ServiceUnavailable"
    assert (await ask(Service(Answering(200, b"<html>")), ALL)).status == 502


async def test_over_a_socket_what_is_too_large_or_malformed_is_refused_in_the_same_form() -> None:
    async with a_desk(ServiceOptions(body=1000)) as desk, desk.service.serving() as (host, port):
        assert host == "127.0.0.1"
        async with ConnectionPool(f"http://{host}:{port}") as pool:
            big = await pool.send(desk.request("POST", ALL, {"name": "x", "spec": {"config": "a" * 2000}}))
            assert big.status == 413
            assert big.headers.get("content-type") == "application/problem+json"
            assert big.headers.get("x-content-type-options") == "nosniff"
        async with ConnectionPool(f"http://{host}:{port}") as pool:
            assert (await pool.send(desk.request("GET", ALL))).status == 200


async def test_over_a_socket_streams_end_well_when_the_service_stops() -> None:
    async with a_desk() as desk:
        async with desk.service.serving() as (host, port):
            pool = ConnectionPool(f"http://{host}:{port}")
            stream = await pool.stream(desk.request("GET", STREAM))
            listener = Listener(aiter(stream))
            assert (await listener.take(1))[0].event == "synced"
        assert await listener.next() is None
        await stream.aclose()
        await pool.aclose()
        assert desk.service.streams == 0


async def test_a_client_that_half_closes_early_leaves_no_watch_behind() -> None:
    """No reader would end its stream, and no counter would count it."""
    async with a_desk() as desk:
        watches = Watches(desk.server.transport)
        service = Service(watches)
        async with service.serving() as (host, port):
            reader, writer = await asyncio.open_connection(host, port)
            head = f"GET {STREAM} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {desk.token}\r\n\r\n"
            writer.write(head.encode())
            writer.write_eof()
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200 ")
            writer.close()
            (watch,) = watches.opened
            assert await watch.read() == b"", "who reads a stream that is still open waits for minutes"
        assert service.streams == 0


class Watches:
    """A transport that remembers the streams that went through it, and takes its time to open them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.opened: list[Stream] = []
        self.send = inner.send

    async def stream(self, request: Request) -> Stream:
        for _ in range(20):
            await asyncio.sleep(0)
        self.opened.append(await self._inner.stream(request))
        return self.opened[-1]
