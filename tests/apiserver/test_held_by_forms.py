"""How long bodies and lists in other forms than JSON hold up all others: protobuf, YAML, gzip, tables."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from functools import partial
from typing import Any

import pytest

from konverge.wire.server import Server
from tests.apiserver.api import APPLY, CONFIG_MAPS, Api
from tests.apiserver.held import Held, held, measured
from tests.apiserver.test_held_by_requests import PARTIAL, YAML
from tests.apiserver.test_large_requests import TABLE

pytestmark = [pytest.mark.spec("T-08"), pytest.mark.blocking]
PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def member(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def config_map(raw: bytes) -> bytes:
    """An envelope as Go clients send it. Upstream: runtime.Unknown."""
    return b"k8s\x00" + member(1, member(1, b"v1") + member(2, b"ConfigMap")) + member(2, raw)


METADATA = member(1, member(1, b"x"))
UNKNOWN = varint(9 << 3)
BODIES = {
    "a number of megabytes": (METADATA + UNKNOWN + b"\xff" * 2_900_000 + b"\x01", 400),
    "many large numbers": (METADATA + (UNKNOWN + b"\xff" * 9 + b"\x01") * 120_000, 201),
    "tags that are none": ((b"\xff" * 9 + b"\x01") * 290_000, 400),
    "many entries of one key": (METADATA + member(2, member(1, b"a") + member(2, b"b")) * 150_000, 201),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_of_protobuf(api: Api, name: str) -> None:
    raw, status = BODIES[name]
    await api.send("POST", CONFIG_MAPS, config_map(member(1, member(1, b"first"))), content_type=PROTOBUF)
    probe = await held(api, "POST", CONFIG_MAPS, config_map(raw), content_type=PROTOBUF)
    assert probe.response.status == status, probe.response.body[:300]
    probe.check()


MANY_KEYS = b"".join(b"  k%d: v\n" % number for number in range(25_000))
YAMLS = {
    "many keys": (MANY_KEYS, 201, 201),
    "long texts": (b"".join(b"  k%d: %b\n" % (number, b"v" * 5_000) for number in range(540)), 422, 422),
    "lines": (b"  a: |\n" + b"    a line of text\n" * 145_000, 422, 422),
    "a list": (b"  - " + b"a" * 500 + b"\n" + (b"  - " + b"a" * 500 + b"\n") * 5_500, 400, 500),
}
"""The data of a ConfigMap, and how it is answered as a creation and as an apply. But for the first: 2.5 MB and more."""


@pytest.mark.parametrize("is_apply", [False, True], ids=["create", "apply"])
@pytest.mark.parametrize("name", YAMLS)
async def test_five_bodies_of_yaml_at_once(api: Api, name: str, is_apply: bool) -> None:
    content, *statuses = YAMLS[name]
    assert 2_500_000 < len(content) < 2_900_000 or content is MANY_KEYS

    def request(name: str, content: bytes) -> Any:
        body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %b}\n%b" % (name.encode(), content)
        if is_apply:
            return api.request("PATCH", f"{CONFIG_MAPS}/{name}?fieldManager=m", body, content_type=APPLY)
        return api.request("POST", CONFIG_MAPS, body, content_type=YAML)

    await api.server.transport.send(request("first", b""))
    requests = [request(f"y{number}", b"data:\n" + content) for number in range(5)]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(api.server.transport.send(request) for request in requests))

    answers, probe = await measured(all_of_them())
    assert [answer.status for answer in answers] == [statuses[is_apply]] * 5, answers[0].body[:300]
    Held(answers[0], *probe).check()


@pytest.mark.long
async def test_a_config_map_of_many_keys(api: Api) -> None:
    """Its keys are checked one by one, in a loop that gives way."""
    data = {f"k{number}": "" for number in range(230_000)}
    body = json.dumps({"metadata": {"name": "x"}, "data": data}, separators=(",", ":")).encode()
    for kind in ("configmaps", "secrets"):
        path = CONFIG_MAPS.replace("configmaps", kind)
        await api.create("first", path)
        probe = await held(api, "POST", path, body)
        assert probe.response.status == 500, probe.response.body[:300]  # too large with its managedFields
        probe.check()


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.long), 3, 4_000])
async def test_a_body_in_small_chunks(api: Api, size: int) -> None:
    """Over a socket, from another thread: each chunk costs the reader, and all come as fast as they can be read."""
    await api.create("first")
    content = json.dumps(
        {"metadata": {"name": "x"}, "data": {"k": "v" * 1_000_000}, "unknown": "v" * 1_990_000}
    ).encode()
    chunks = (content[begin : begin + size] for begin in range(0, len(content), size))
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    head = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {api.server.token}\r\nconnection: close\r\n"
    )
    head += "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"

    def send(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(head.encode() + body)
            return b"".join(iter(partial(sock.recv, 1 << 20), b""))

    server = await Server(api.server.handle).start()
    try:
        answer, probe = await measured(asyncio.to_thread(send, server.port))
    finally:
        await server.close()
    assert answer.startswith(b"HTTP/1.1 201 "), answer[:300]
    assert (await api.call("GET", f"{CONFIG_MAPS}/x"))["data"] == {"k": "v" * 1_000_000}
    Held(await api.send("GET", "/version"), *probe).check()


async def test_a_compressed_body_is_refused_before_it_is_inflated(api: Api) -> None:
    """It is taken for JSON, which it is not: nothing small becomes large."""
    body = gzip.compress(json.dumps({"metadata": {"name": "x"}, "data": {"k": "v" * 20_000_000}}).encode())
    assert len(body) < 100_000
    probe = await held(api, "POST", CONFIG_MAPS, body, content_encoding="gzip")
    assert probe.response.status == 400
    probe.check()


async def test_lists_of_many_objects_in_every_form(api: Api) -> None:
    count = 1_000
    for number in range(count):
        await api.create(f"x{number}", data={f"k{key}": "v" * 30 for key in range(60)})
    for accept in (TABLE, PARTIAL, YAML, f"{PROTOBUF},application/json"):
        for encoding in ("identity", "gzip"):
            await api.send("GET", f"{CONFIG_MAPS}?limit=1", accept=accept)  # the first one imports what it needs
            probe = await held(api, "GET", CONFIG_MAPS, accept=accept, accept_encoding=encoding)
            assert probe.response.status == 200
            assert probe.response.body
            probe.check()
