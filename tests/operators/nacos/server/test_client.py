"""The HTTP client against the recorded exchanges of real servers, over a handler and over sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.server import HttpNacosServers, Identity, NacosError, over_sockets
from konverge.wire import ConnectFailed, Direct, Headers, Request, Response, Server

EXCHANGES = Path(__file__).parents[1] / "exchanges"
IDENTITY = Identity("serverIdentity", "security")
SECRET = "Adm1n-lab"
Answer = Callable[[Request], Response]


class Recorded:
    """A server that answers as a real one of that version did; what was not recorded is unknown to it."""

    def __init__(self, version: str) -> None:
        self.asked: list[str] = []
        self.answers: dict[tuple[str, str, str], Response] = {}
        for path in sorted(EXCHANGES.glob(f"{version}-*.json")):
            one = json.loads(path.read_text())
            url = urlsplit(one["request"]["url"])
            text = one["text"] if one["json"] is None else json.dumps(one["json"])
            key = self._key(one["request"]["method"], url.path, one["request"]["body"], one["request"]["headers"])
            self.answers[key] = Response(one["status"], Headers.of(one["headers"]), text.encode())

    def _key(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[str, str, str]:
        identity = {key.lower(): value for key, value in headers.items()}.get("serveridentity", "")
        wanted = identity if "/core/cluster" in path else ",".join(sorted(parse_qs(body).get("password", [])))
        return method, path, wanted

    async def __call__(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.target}")
        key = self._key(request.method, request.target, request.body.decode(), dict(request.headers))
        return self.answers.get(key) or Response(404, body=b'{"status":404,"error":"Not Found"}')


def _servers(handler: Callable[..., object]) -> HttpNacosServers:
    return HttpNacosServers(lambda address, port: Direct(handler))  # type: ignore[arg-type]


def _constant(response: Response) -> HttpNacosServers:
    async def handler(request: Request) -> Response:
        return response

    return _servers(handler)


@pytest.mark.spec("N-10")
async def test_members_of_2x_are_on_v1() -> None:
    server = Recorded("2.4.3")
    servers = _servers(server)
    (member,) = await servers.nodes("127.0.0.1", identity=IDENTITY)
    assert (member.address, member.state, member.version) == ("127.0.0.1:8848", "UP", "2.4.3")
    assert member.leaders is not None
    assert server.asked == ["GET /nacos/v1/core/cluster/nodes"]


@pytest.mark.spec("N-10")
async def test_members_of_3x_are_found_on_v3_and_asked_there_from_then_on() -> None:
    server = Recorded("3.0.3")
    servers = _servers(server)
    (member,) = await servers.nodes("127.0.0.1", identity=IDENTITY)
    assert member.version == "3.0.3"
    await servers.nodes("127.0.0.1", identity=IDENTITY)
    assert [request.rpartition("/nacos/")[2].partition("/")[0] for request in server.asked] == ["v1", "v2", "v3", "v3"]


async def test_a_server_that_changed_its_version_is_found_again() -> None:
    versions = {"now": Recorded("3.0.3")}

    async def handler(request: Request) -> Response:
        return await versions["now"](request)

    servers = _servers(handler)
    assert (await servers.nodes("127.0.0.1", identity=IDENTITY))[0].version == "3.0.3"
    versions["now"] = Recorded("2.4.3")
    assert (await servers.nodes("127.0.0.1", identity=IDENTITY))[0].version == "2.4.3"


@pytest.mark.parametrize("version", ["2.4.3", "3.0.3"])
async def test_without_an_identity_it_is_forbidden_and_says_what_to_do(version: str) -> None:
    servers = _servers(Recorded(version))
    with pytest.raises(NacosError, match="set identitySecretRef") as caught:
        await servers.nodes("127.0.0.1")
    assert caught.value.reason == "Forbidden"


async def test_a_wrong_identity_is_never_repeated() -> None:
    async def handler(request: Request) -> Response:
        said = f"no such identity {request.headers.get('serverIdentity')}"
        return Response(403, body=json.dumps({"message": said}).encode())

    identity = Identity("serverIdentity", "hunter2-hunter2")
    with pytest.raises(NacosError) as caught:
        await _servers(handler).nodes("127.0.0.1", identity=identity)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(identity)


@pytest.mark.parametrize(("key", "value"), [("bad name", "x"), ("k", "line\r\nbreak"), ("", "x"), ("k", "ü")])
async def test_an_identity_that_is_no_header(key: str, value: str) -> None:
    with pytest.raises(NacosError, match="correct its Secret"):
        await _constant(Response(200)).nodes("127.0.0.1", identity=Identity(key, value))


@pytest.mark.parametrize(
    ("version", "good", "bad"), [("2.4.3", (SECRET,), ("wrong", "nacos")), ("3.0.3", (SECRET,), ("wrong", "nacos"))]
)
async def test_a_login_is_answered_by_every_line(version: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    servers = _servers(Recorded(version))
    for password in good:
        assert await servers.login("127.0.0.1", username="nacos", password=password)
    for password in bad:
        assert not await servers.login("127.0.0.1", username="nacos", password=password)


@pytest.mark.parametrize(("version", "again"), [("2.4.3", "other"), ("3.0.3", "Other")])
async def test_the_first_administrator_is_created_once(version: str, again: str) -> None:
    servers = _servers(Recorded(version))
    assert await servers.bootstrap_admin("127.0.0.1", password=SECRET)
    assert not await servers.bootstrap_admin("127.0.0.1", password=again)


@pytest.mark.parametrize(("path", "code"), [("/nacos/v1/core/ops/raft", 200), ("/nacos/v3/admin/core/ops/raft", 0)])
async def test_a_peer_is_removed_with_the_identity(path: str, code: int) -> None:
    asked: list[tuple[str, str, object]] = []

    async def handler(request: Request) -> Response:
        if request.target != path:
            return Response(410)
        asked.append((request.method, request.headers.get("serverIdentity"), json.loads(request.body)))
        return Response(200, body=json.dumps({"code": code, "message": None, "data": None}).encode())

    await _servers(handler).remove_peer("127.0.0.1", peer="nacos-2.h:7848", identity=IDENTITY)
    assert asked == [("POST", "security", {"command": "removePeer", "value": "nacos-2.h:7848"})]


async def test_a_peer_that_cannot_be_removed() -> None:
    body = json.dumps({"code": 500, "message": "no leader"}).encode()
    with pytest.raises(NacosError, match=r"a:7848 was not removed from the raft groups: no leader"):
        await _constant(Response(200, body=body)).remove_peer("127.0.0.1", peer="a:7848")


async def test_a_failed_bootstrap_tells_no_password() -> None:
    body = json.dumps({"code": 500, "message": f"could not store {SECRET}"}).encode()
    with pytest.raises(NacosError) as caught:
        await _constant(Response(200, body=body)).bootstrap_admin("127.0.0.1", password=SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("status", [404, 405, 410, 501])
async def test_no_known_api(status: int) -> None:
    with pytest.raises(NacosError) as caught:
        await _constant(Response(status)).nodes("127.0.0.1")
    assert caught.value.reason == "Gone"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(500, body=b"caused: io exception;"), "ServerError"),
        (Response(302, body=b""), "BadAnswer"),
        (Response(200, body=b""), "BadAnswer"),
        (Response(200, body=b"<html>"), "BadAnswer"),
        (Response(200, body=b"{}"), "BadAnswer"),
        (Response(200, body=b'{"code":30000,"message":"no","data":null}'), "ServerError"),
        (Response(200, body=b'{"data":' + b"[" * 200_000), "BadAnswer"),
        (Response(200, body=b'{"data":[{"ip":""}]}'), "BadAnswer"),
        (Response(200, body=b'{"data":[' + b",".join([b'{"ip":"a","port":1}'] * 300) + b"]}"), "BadAnswer"),
        (Response(200, body=b" " * (2 << 20)), "BadAnswer"),
    ],
)
async def test_bad_answers(response: Response, reason: str) -> None:
    with pytest.raises(NacosError) as caught:
        await _constant(response).nodes("127.0.0.1")
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["code", "data", "ip", "port", "state", "extendInfo", "raftMetaData", "metaDataMap", "leader"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(json_values)
async def test_any_json_is_an_answer_or_a_nacos_error(value: object) -> None:
    servers = _constant(Response(200, body=json.dumps(value).encode()))
    with suppress(NacosError):
        await servers.nodes("127.0.0.1")
    with suppress(NacosError):
        await servers.remove_peer("127.0.0.1", peer="nacos-3:7848")
    await servers.login("127.0.0.1", username="u", password="p")


@given(st.binary(max_size=200))
async def test_any_bytes_are_an_answer_or_a_nacos_error(body: bytes) -> None:
    servers = _constant(Response(200, body=body))
    with pytest.raises(NacosError):
        await servers.nodes("127.0.0.1")


@pytest.mark.virtual
async def test_time_is_bounded() -> None:
    async def handler(request: Request) -> Response:
        await asyncio.sleep(3600)
        return Response(200)

    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(NacosError) as caught:
        await _servers(handler).nodes("127.0.0.1", timeout=2.5)
    assert caught.value.reason == "Timeout"
    assert loop.time() - began == 2.5


@pytest.mark.virtual
async def test_connections_at_once_are_bounded_and_closed() -> None:
    counts: Counter[str] = Counter()

    class Slow:
        async def send(self, request: Request) -> Response:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
            await asyncio.sleep(1)
            counts["now"] -= 1
            return Response(200, body=b'{"code":200,"data":[]}')

        async def aclose(self) -> None:
            counts["closed"] += 1

    servers = HttpNacosServers(lambda address, port: Slow(), concurrent=4)
    await asyncio.gather(*(servers.nodes(f"127.0.0.{i}", timeout=30) for i in range(20)))
    assert (counts["most"], counts["closed"], counts["now"]) == (4, 20, 0)


async def test_an_unreachable_server() -> None:
    class Refused:
        async def send(self, request: Request) -> Response:
            raise ConnectFailed("cannot connect")

        async def aclose(self) -> None: ...

    for connect in (lambda address, port: Refused(), over_sockets):
        with pytest.raises(NacosError) as caught:
            await HttpNacosServers(connect).nodes("127.0.0.1", port=1)
        assert caught.value.reason == "Unreachable"


@pytest.mark.parametrize("address", ["", "a b", "10.0.0.1/x", "[", "host:80:80"])
async def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(NacosError) as caught:
        await HttpNacosServers().nodes(address, timeout=2)
    assert caught.value.reason == "Unreachable"


async def test_over_sockets_ipv4_and_ipv6(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    recorded = Recorded("3.0.3")
    for host in ("127.0.0.1", "::1"):
        async with Server(recorded) as server:
            try:
                await server.start(host, 0)
            except OSError:
                assert host == "::1", "this machine has no IPv6"
                continue
            port = server.addresses[0][1]
            servers = HttpNacosServers()
            (member,) = await servers.nodes(host, port=port, identity=IDENTITY)
            assert member.version == "3.0.3"
            assert await servers.login(host, port=port, username="nacos", password=SECRET)
    assert SECRET not in caplog.text
    assert IDENTITY.value not in caplog.text
