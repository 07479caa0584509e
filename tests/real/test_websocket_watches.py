"""Watches over WebSockets, on kube-apiserver and on ours: the same handshakes and the same messages."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

import pytest

from konverge.wire.websocket_frames import Opcode
from tests.real.sides import NAMESPACE, Side
from tests.wire.websocket_client import handshake

pytestmark = pytest.mark.spec("S-06", "S-57")

CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


@contextmanager
def _opened(side: Side, query: str, *protocols: str, with_header: bool = True) -> Iterator[tuple[str, BinaryIO]]:
    """The head of the answer, and what follows."""
    with closing(socket.create_connection((side.host, side.port), timeout=60)) as plain:
        sock = side.tls.wrap_socket(plain, server_hostname=side.host) if side.tls is not None else plain
        with closing(sock), sock.makefile("rb") as file:
            fields = side.headers if with_header else {}
            extra = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            target = f"{CONFIG_MAPS}?watch=true&{query}"
            sock.sendall(handshake(target, *protocols, extra=f"{extra}origin: http://x\r\n"))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += file.readline()
            yield head.decode("latin-1"), file


def _message(file: BinaryIO) -> tuple[Opcode, bytes]:
    first, second = file.read(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(file.read(2 if size == 126 else 8), "big")
    return Opcode(first & 0x0F), file.read(size)


def _shown(opcode: Opcode, data: bytes) -> tuple[str, Any]:
    """Without what differs between any two objects."""
    if opcode is not Opcode.TEXT:
        return opcode.name, len(data)
    event = json.loads(data)
    metadata = event["object"]["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
    return opcode.name, (event["type"], kept, event["object"].get("data"), data[-2:])


def test_each_event_is_the_same_message(sides: tuple[Side, Side]) -> None:
    seen = []
    for side in sides:
        for name in ("ws-a", "ws-b"):
            body = {"metadata": {"name": name, "labels": {"ws": "yes"}}, "data": {"name": name}}
            assert side.send("POST", CONFIG_MAPS, body)[0] == 201
        with _opened(side, "labelSelector=ws&timeoutSeconds=2") as (head, file):
            code = head.split()[1]
            messages = [_shown(*_message(file)) for _ in range(3)]
        seen.append((code, re.findall(r"(?i)sec-websocket-protocol: (.*)\r", head), messages))
    assert seen[1] == seen[0]
    assert [kind for kind, _ in seen[0][2]] == ["TEXT", "TEXT", "CLOSE"]


@pytest.mark.parametrize("by_protocol", [False, True])
def test_a_subprotocol_is_answered_alike(sides: tuple[Side, Side], by_protocol: bool) -> None:
    """Also where the token comes as one, as browsers send it."""
    seen = []
    for side in sides:
        token = base64.urlsafe_b64encode(side.headers["Authorization"].removeprefix("Bearer ").encode()).rstrip(b"=")
        protocols = [f"base64url.bearer.authorization.k8s.io.{token.decode()}"] if by_protocol else []
        query = "labelSelector=none&timeoutSeconds=1"
        with _opened(side, query, *protocols, "mine", with_header=not by_protocol) as (head, _):
            seen.append((head.split()[1], re.findall(r"(?i)sec-websocket-protocol: (.*)\r", head)))
    assert seen[1] == seen[0] == ("101", ["mine"])
