"""The subprotocols of exec and attach over WebSockets: how messages are written, and how the outcome is told.

    v5.channel.k8s.io                                   as `channels` has it
    v4.channel.k8s.io, v4.base64.channel.k8s.io         without an end of single channels
    channel.k8s.io, base64.channel.k8s.io, none at all  and without an outcome: a failure is told as text

In base64 a message is text, and its channel a digit. Upstream: cri-streaming/pkg/streaming/remotecommand/websocket.go.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable

from konverge.apiserver import status
from konverge.sim.kubelet.channels import OUTCOME, Channels
from konverge.wire import websocket
from konverge.wire.message import Request, Response
from konverge.wire.websocket import WebSocket

NEWER = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")
OLDER = ("channel.k8s.io", "base64.channel.k8s.io")
_ZERO = ord("0")


def accept(request: Request, talk: Callable[[Channels], Awaitable[None]]) -> Response:
    """The answer that turns the connection into a session. Raises ApiError."""
    protocol = websocket.choose(request, (*NEWER, *OLDER))
    if not protocol and (websocket.offered(request) or not websocket.is_asked_for(request)):
        raise status.bad_request(
            "unable to upgrade the connection: this server speaks SPDY and WebSockets here, the latter with the "
            f"subprotocols {', '.join((*NEWER, *OLDER))}"
        )

    async def spoken(socket: WebSocket) -> None:
        channels: Channels = _Base64(socket) if "base64" in protocol else socket
        await talk(channels if protocol in NEWER else _Older(channels))

    try:
        return websocket.accept(request, protocol, spoken)
    except websocket.HandshakeError as error:
        raise status.bad_request(f"unable to upgrade the connection: {error}") from None


class _Base64:
    """Messages as text."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> bytes | None:
        while (message := await self._socket.receive()) is not None:
            try:
                return bytes((message[0] - _ZERO,)) + base64.b64decode(message[1:], validate=True)
            except (IndexError, ValueError, binascii.Error):
                continue  # upstream: frames that cannot be read are left out
        return None

    async def send(self, data: bytes) -> None:
        await self._socket.send(bytes((_ZERO + data[0],)) + base64.b64encode(data[1:]), text=True)

    @property
    def closed(self) -> bool:
        return self._socket.closed


class _Older:
    """The outcome of a success is the end of the session; a failure is a sentence. Upstream: v1WriteStatusFunc."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self.receive = channels.receive

    async def send(self, data: bytes) -> None:
        if data[0] != OUTCOME:
            await self._channels.send(data)
            return
        outcome = json.loads(data[1:])
        if outcome["status"] != "Success":
            await self._channels.send(bytes((OUTCOME,)) + outcome["message"].encode())

    @property
    def closed(self) -> bool:
        return self._channels.closed
