"""SOCKS 5 (RFC 1928, passwords by RFC 1929), as `ssh -D` speaks it: the way to a cluster behind a jump host.

The proxy gets the name and not its address, as with Go's programs: often only its side can look it up.
"""

from __future__ import annotations

import ipaddress

from konverge.wire.errors import ProxyFailed
from konverge.wire.proxy_handshake import ProxyHandshake

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
