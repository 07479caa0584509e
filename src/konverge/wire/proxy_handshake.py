"""Handshakes with proxies, before the connection carries requests to the server: HTTP CONNECT and SOCKS 5.

SOCKS 5 (RFC 1928, passwords by RFC 1929) is what `ssh -D` speaks: the way to a cluster behind a jump host. The proxy
gets the server's name, not its address.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import cast

from konverge.wire.errors import ProxyFailed

_VERSION = 5
_NO_PASSWORD, _PASSWORD = 0, 2
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSALS = {
    1: "it failed",
    2: "its rules do not allow it",
    3: "the network is unreachable from there",
    4: "the host is unreachable from there",
    5: "the server refused the connection",
    6: "the server did not answer in time",
    7: "it does not make connections",
    8: "it does not know this kind of address",
}


async def ask_for_connection(
    handshake: ProxyHandshake, host: str, port: int, credentials: tuple[str, str] | None
) -> None:
    """Let the proxy connect to a server."""
    methods = bytes((_NO_PASSWORD,) if credentials is None else (_NO_PASSWORD, _PASSWORD))
    handshake.write(bytes((_VERSION, len(methods))) + methods)
    version, method = await handshake.exactly(2)
    if version != _VERSION:
        raise ProxyFailed("the proxy does not speak SOCKS 5; check its address and scheme")
    if method == _PASSWORD and credentials is not None:
        await _log_in(handshake, *credentials)
    elif method != _NO_PASSWORD:
        raise ProxyFailed("the proxy wants to know who we are; write user and password into its URL")
    handshake.write(bytes((_VERSION, _CONNECT, 0)) + _encoded(host) + port.to_bytes(2, "big"))
    await _read_reply(handshake, host)
    handshake.finish()


async def _log_in(handshake: ProxyHandshake, user: str, password: str) -> None:
    handshake.write(b"\x01" + _counted(user.encode(), "user") + _counted(password.encode(), "password"))
    _, status = await handshake.exactly(2)
    if status != 0:
        raise ProxyFailed("the proxy refused us; check its user and password")


async def _read_reply(handshake: ProxyHandshake, host: str) -> None:
    version, status, _, kind = await handshake.exactly(4)
    if version != _VERSION:
        raise ProxyFailed("the proxy does not speak SOCKS 5; check its address and scheme")
    if status != 0:
        reason = _REFUSALS.get(status, f"for reason {status}")
        raise ProxyFailed(f"the proxy made no connection to {host}: {reason}; check its rules, or NO_PROXY")
    size = {_IPV4: 4, _IPV6: 16}.get(kind)
    if size is None:
        size = (await handshake.exactly(1))[0]
    await handshake.exactly(size + 2)  # the address it connected from is not used


def _encoded(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bytes((_NAME,)) + _counted(host.encode("ascii"), "host")
    return bytes((_IPV4 if address.version == 4 else _IPV6,)) + address.packed


def _counted(text: bytes, what: str) -> bytes:
    if len(text) > 255:
        raise ProxyFailed(f"the {what} is longer than SOCKS 5 can say (255 bytes)")
    return bytes((len(text),)) + text


_LIMIT = 16 * 1024
"""Bytes of one answer."""


class ProxyHandshake(asyncio.Protocol):
    """Write, then read as much as the protocol says; bytes that are left over are an error."""

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        cast(asyncio.Transport, self._transport).write(data)

    async def exactly(self, size: int) -> bytes:
        while len(self._arrived) < size:
            await self._more()
        data = bytes(self._arrived[:size])
        del self._arrived[:size]
        return data

    async def until(self, mark: bytes) -> bytes:
        """Everything before the mark, which is taken away too."""
        while mark not in self._arrived:
            if len(self._arrived) > _LIMIT:
                raise ProxyFailed("the proxy's answer is not HTTP/1.1; check its address")
            await self._more()
        data, _, rest = self._arrived.partition(mark)
        self._arrived = rest
        return bytes(data)

    def finish(self) -> None:
        """The server's turn begins: it has not been asked yet, so nothing may be here."""
        if self._arrived:
            raise ProxyFailed("the proxy sent more than its protocol allows; check its address and scheme")

    async def _more(self) -> None:
        if self._ended:
            raise ProxyFailed("the proxy closed the connection; check its log")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if len(self._arrived) > 2 * _LIMIT:
            cast(asyncio.Transport, self._transport).abort()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def ask_for_tunnel(handshake: ProxyHandshake, target: str, authorization: bytes) -> None:
    """The tunnel of an HTTP proxy: CONNECT."""
    line = target.encode("ascii")
    handshake.write(b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (line, line, authorization))
    status_line, _, _ = (await handshake.until(b"\r\n\r\n")).partition(b"\r\n")
    parts = status_line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ProxyFailed("the proxy did not answer in HTTP/1.1; check its address and scheme")
    if not 200 <= int(parts[1]) < 300:
        advice = "check its user and password" if parts[1] == b"407" else "check its rules, or NO_PROXY"
        raise ProxyFailed(f"the proxy refused a tunnel to {target} with {parts[1].decode()}; {advice}")
    handshake.finish()
