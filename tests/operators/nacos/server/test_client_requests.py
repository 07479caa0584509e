"""What the client sends, and how it takes each answer; beside the recorded exchanges of `test_client.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from konverge.operators.nacos.server import HttpNacosServers, Identity, NacosError, client, over_sockets
from konverge.wire import BodyTooLarge, Direct, ProtocolError, Request, Response, Server

pytestmark = pytest.mark.spec("N-10")
EMPTY = b'{"code":200,"data":[]}'
Answer = Callable[[Request], Response]


class Asked:
    """Answers by path, and keeps what was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.opened: list[tuple[str, int]] = []

    def servers(self) -> HttpNacosServers:
        async def handler(request: Request) -> Response:
            self.requests.append(request)
            return self.answer(request)

        def connect(address: str, port: int) -> Any:
            self.opened.append((address, port))
            return Direct(handler)

        return HttpNacosServers(connect)

    @property
    def versions(self) -> list[str]:
        return [request.target.split("/")[2] for request in self.requests]


def always(status: int, body: bytes = b"") -> Asked:
    return Asked(lambda request: Response(status, body=body))


def only(version: str, body: bytes = EMPTY, missing: int = 410) -> Asked:
    def answer(request: Request) -> Response:
        return Response(200, body=body) if f"/{version}/" in request.target else Response(missing)

    return Asked(answer)


async def test_a_list_of_members_is_asked_for_with_the_identity() -> None:
    asked = always(200, EMPTY)
    assert await asked.servers().nodes("10.0.0.1", port=99, identity=Identity("Key", "value")) == ()
    (request,) = asked.requests
    assert (request.method, request.target, request.body) == ("GET", "/nacos/v1/core/cluster/nodes", b"")
    assert request.headers.get("key") == "value"
    assert request.headers.get("accept") == "application/json, text/plain"
    assert request.headers.get("user-agent") == "konverge"
    assert asked.opened == [("10.0.0.1", 99)]


async def test_a_login_is_a_form() -> None:
    asked = always(200, b'{"accessToken": "t"}')
    assert await asked.servers().login("10.0.0.1", username="me", password="a&b")
    (request,) = asked.requests
    assert (request.method, request.target) == ("POST", "/nacos/v1/auth/login")
    assert parse_qs(request.body.decode()) == {"username": ["me"], "password": ["a&b"]}
    assert request.headers.get("content-type") == "application/x-www-form-urlencoded"
    assert asked.opened == [("10.0.0.1", 8848)]


@pytest.mark.parametrize(
    ("status", "body", "accepted"),
    [(200, b'{"accessToken": "t"}', True), (200, b"{}", False), (403, b'{"accessToken": "t"}', False)],
)
async def test_only_a_token_is_a_login(status: int, body: bytes, accepted: bool) -> None:
    assert await always(status, body).servers().login("a", username="u", password="p") is accepted


@pytest.mark.parametrize(
    ("status", "body", "created"),
    [
        (200, b'{"code": 0}', True),
        (200, b'{"code": 200}', True),
        (200, b"created", True),
        (200, b'{"code": 409}', False),
        (409, b"", False),
        (200, b'{"code": 500}', None),
        (500, b'{"code": 0}', None),
        (403, b"", None),
    ],
)
async def test_the_first_administrator(status: int, body: bytes, created: bool | None) -> None:
    asked = always(status, body)
    if created is None:
        with pytest.raises(NacosError) as wrong:
            await asked.servers().bootstrap_admin("a", port=1, password="word")
        assert wrong.value.reason == "ServerError"
        assert wrong.value.message.startswith(f"a:1: the administrator was not created (HTTP {status})")
    else:
        assert await asked.servers().bootstrap_admin("a", password="word") is created
    (request,) = asked.requests
    assert request.target == "/nacos/v1/auth/users/admin"
    assert parse_qs(request.body.decode()) == {"password": ["word"]}


@pytest.mark.parametrize(
    ("status", "body", "reason", "text"),
    [
        (
            200,
            b'{"code": 500, "message": "no leader"}',
            "ServerError",
            "p:1 was not removed from the raft groups: no leader",
        ),
        (200, b'{"code": 500}', "ServerError", "p:1 was not removed from the raft groups: no reason given"),
        (200, b"{}", "ServerError", "p:1 was not removed from the raft groups: no reason given"),
        (500, b'{"code": 200, "message": "broken"}', "ServerError", "HTTP 500 'broken'"),
        (403, b'{"code": 200}', "Forbidden", "refused (HTTP 403"),
    ],
)
async def test_a_peer_that_stays(status: int, body: bytes, reason: str, text: str) -> None:
    with pytest.raises(NacosError) as wrong:
        await always(status, body).servers().remove_peer("a", port=1, peer="p:1")
    assert wrong.value.reason == reason
    assert wrong.value.message.startswith(f"a:1: {text}")


async def test_the_removal_of_a_peer() -> None:
    asked = always(200, b'{"code": 200}')
    await asked.servers().remove_peer("a", peer="p:1", identity=Identity("Key", "value"))
    (request,) = asked.requests
    assert (request.method, request.target) == ("POST", "/nacos/v1/core/ops/raft")
    assert json.loads(request.body) == {"command": "removePeer", "value": "p:1"}
    assert (request.headers.get("content-type"), request.headers.get("key")) == ("application/json", "value")


# ------------------------------------------------------------------ versions of the API


@pytest.mark.parametrize("missing", [404, 405, 410, 501])
async def test_the_first_version_that_the_server_has(missing: int) -> None:
    asked = only("v2", missing=missing)
    servers = asked.servers()
    await servers.nodes("a")
    await servers.nodes("a")
    assert asked.versions == ["v1", "v2", "v2"]
    await servers.nodes("b")
    assert asked.versions[3:] == ["v1", "v2"], "another server may have another version"
    await servers.nodes("a", port=1)
    assert asked.versions[5:] == ["v1", "v2"]


async def test_questions_share_what_is_known_of_the_list() -> None:
    asked = only("v3", b'{"code": 0, "data": []}')
    servers = asked.servers()
    await servers.nodes("a")
    asked.requests.clear()
    await servers.login("a", username="u", password="p")
    assert asked.versions == ["v3"]
    asked.answer = only("v1").answer
    await servers.login("a", username="u", password="p")
    assert asked.versions == ["v3", "v3", "v1"]
    await servers.login("a", username="u", password="p")
    assert asked.versions[3:] == ["v1"], "each question has its own memory first"


async def test_a_server_without_any_version_is_asked_from_the_start_again() -> None:
    asked = only("v3")
    servers = asked.servers()
    await servers.nodes("a")
    asked.answer = always(404).answer
    with pytest.raises(NacosError) as wrong:
        await servers.nodes("a")
    assert wrong.value.reason == "Gone"
    assert "a:8848 has none of /nacos/v3/" in wrong.value.message
    assert "(HTTP 404)" in wrong.value.message
    asked.requests.clear()
    asked.answer = always(200, EMPTY).answer
    await servers.nodes("a")
    assert asked.versions == ["v1"]


async def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REMEMBERED", 2)
    asked = only("v3")
    servers = asked.servers()
    for address in ("a", "b", "a", "c"):
        await servers.nodes(address)
    asked.requests.clear()
    await servers.nodes("a")
    assert asked.versions == ["v3"]
    await servers.nodes("b")
    assert asked.versions == ["v3", "v1", "v2", "v3"], "the server that was not asked for longest"


# ------------------------------------------------------------------ refusals and errors


@pytest.mark.parametrize(
    ("status", "identity", "reason", "advice"),
    [
        (401, None, "Forbidden", "set identitySecretRef"),
        (403, None, "Forbidden", "set identitySecretRef"),
        (403, Identity("k", "v"), "Forbidden", "check the identity in its Secret"),
        (500, None, "ServerError", "see the log of the server"),
        (503, None, "ServerError", "see the log of the server"),
        (400, None, "BadAnswer", "see the log of the server"),
        (499, None, "BadAnswer", "see the log of the server"),
    ],
)
async def test_statuses(status: int, identity: Identity | None, reason: str, advice: str) -> None:
    with pytest.raises(NacosError) as wrong:
        await always(status, b'{"message": "text"}').servers().nodes("a", port=1, identity=identity)
    assert wrong.value.reason == reason
    assert wrong.value.message.startswith("a:1: ")
    assert f"HTTP {status} 'text'" in wrong.value.message
    assert wrong.value.message.endswith(advice)


@pytest.mark.parametrize("value", ["hunter2", ""])
async def test_an_identity_is_masked(value: str) -> None:
    body = json.dumps({"message": f"not {value or 'x'}!"}).encode()
    with pytest.raises(NacosError) as wrong:
        await always(500, body).servers().nodes("a", identity=Identity("k", value))
    assert ("'not …!'" if value else "'not x!'") in wrong.value.message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BodyTooLarge("too\nlarge"), "BadAnswer"),
        (ProtocolError("no\nHTTP"), "BadAnswer"),
        (OSError("no\nroute"), "Unreachable"),
        (TimeoutError(), "Timeout"),
    ],
)
async def test_errors_of_the_wire(error: Exception, reason: str) -> None:
    class Broken:
        closed = False

        async def send(self, request: Request) -> Response:
            raise error

        async def aclose(self) -> None:
            Broken.closed = True

    with pytest.raises(NacosError) as wrong:
        await HttpNacosServers(lambda address, port: Broken()).nodes("a", port=1, timeout=2.5)
    assert wrong.value.reason == reason
    assert wrong.value.message.startswith("a:1")
    assert "\n" not in wrong.value.message
    assert Broken.closed
    if reason == "Timeout":
        assert wrong.value.message == "a:1 did not answer within 2.5 s"


async def test_what_is_no_address_is_not_connected_to() -> None:
    asked = always(200, EMPTY)
    for address in ("a/b", "a b", "", "é", "a" * 254):
        with pytest.raises(NacosError) as wrong:
            await asked.servers().nodes(address)
        assert wrong.value.reason == "Unreachable"
        assert len(wrong.value.message) < 120
    for address in ("10.0.0.1", "fd00::1", "fe80::1%eth0", "nacos-0.nacos-headless"):
        await asked.servers().nodes(address)
    assert [address for address, _ in asked.opened] == ["10.0.0.1", "fd00::1", "fe80::1%eth0", "nacos-0.nacos-headless"]


@pytest.mark.parametrize(
    ("key", "value"), [("a b", "x"), ("", "x"), ("k", "é"), ("k", "a\nb"), ("k" * 257, "x"), ("k", "x" * 4097)]
)
async def test_an_identity_that_no_header_can_be(key: str, value: str) -> None:
    asked = always(200, EMPTY)
    with pytest.raises(NacosError) as wrong:
        await asked.servers().nodes("a", identity=Identity(key, value))
    assert wrong.value.reason == "Forbidden"
    assert asked.requests == []


async def test_the_size_of_an_answer_is_bounded_over_sockets() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, body=b" " * (2 << 20))

    async with Server(handler) as server:
        await server.start("127.0.0.1", 0)
        port = server.addresses[0][1]
        with pytest.raises(NacosError) as wrong:
            await HttpNacosServers(over_sockets).nodes("127.0.0.1", port=port)
    assert wrong.value.reason == "BadAnswer"
    assert "not a list" not in wrong.value.message, "it was not even received"
