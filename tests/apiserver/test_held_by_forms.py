"""How long bodies and lists in other forms than JSON hold up all others: protobuf, YAML, gzip, tables."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from tests.apiserver.api import CONFIG_MAPS, Api
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


async def test_five_bodies_of_yaml_at_once(api: Api) -> None:
    content = b"".join(b"  k%d: v\n" % number for number in range(25_000))
    await api.send("POST", CONFIG_MAPS, b"metadata: {name: first}\n", content_type=YAML)
    requests = [
        api.request("POST", CONFIG_MAPS, b"metadata: {name: y%d}\ndata:\n" % number + content, content_type=YAML)
        for number in range(5)
    ]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(api.server.transport.send(request) for request in requests))

    answers, probe = await measured(all_of_them())
    assert [answer.status for answer in answers] == [201] * 5
    Held(answers[0], *probe).check()


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
