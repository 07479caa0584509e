"""Making connections: name, TCP, proxy, TLS, within one time limit and with errors that tell what to do."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from konverge.wire.address import Address
from konverge.wire.connection import Connection, Owner
from konverge.wire.errors import ConnectFailed, ConnectTimeout, ProxyFailed, TlsFailed, WireError
from konverge.wire.keepalive import keep_alive
from konverge.wire.limits import ClientLimits
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.wire.proxy import Proxy

_PROXY_HEAD_LIMIT = 16 * 1024


class Connector:
    """Opens connections to one server."""

    __slots__ = ("_address", "_context", "_limits", "_proxy", "_server_name", "_tls")

    def __init__(
        self, address: Address, tls: TlsOptions | ssl.SSLContext | None, proxy: Proxy | None, limits: ClientLimits
    ) -> None:
        self._address = address
        self._tls = tls
        self._proxy = proxy
        self._limits = limits
        self._context: ssl.SSLContext | None = tls if isinstance(tls, ssl.SSLContext) else None
        self._server_name = (tls.server_name if isinstance(tls, TlsOptions) else "") or address.host

    async def connect(self, owner: Owner) -> Connection:
        """A new idle connection. Raises ConnectTimeout or ConnectFailed."""
        name = self._address.host_and_port
        try:
            async with asyncio.timeout(self._limits.connect):
                return await self._open(owner)
        except TimeoutError as error:
            raise ConnectTimeout(
                f"no connection to {name}{self._via()} within {self._limits.connect or 0:g} s; "
                "check the address, the network and the firewall"
            ) from error
        except WireError:
            raise
        except ssl.SSLError as error:
            raise TlsFailed(f"TLS with {name} failed: {_tls_advice(error)}") from error
        except (OSError, UnicodeError) as error:
            raise ConnectFailed(
                f"cannot connect to {name}{self._via()}: {error}; check that it runs and that the address is right"
            ) from error

    async def _open(self, owner: Owner) -> Connection:
        connection = Connection(owner, self._limits, self._address.host_and_port)
        loop = asyncio.get_running_loop()
        if self._proxy is not None:
            await self._open_through(self._proxy, connection)
        elif self._address.tls:
            await loop.create_connection(
                lambda: connection,
                self._address.host,
                self._address.port,
                ssl=self._own_context(),
                server_hostname=self._server_name,
            )
        else:
            await loop.create_connection(lambda: connection, self._address.host, self._address.port)
        keep_alive(connection.socket)
        return connection

    async def _open_through(self, proxy: Proxy, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        outer = ssl.create_default_context() if proxy.scheme == "https" else None
        if not self._address.tls:
            await loop.create_connection(lambda: connection, proxy.host, proxy.port, ssl=outer)
            return
        transport, tunnel = await loop.create_connection(_Tunnel, proxy.host, proxy.port, ssl=outer)
        try:
            await tunnel.open(self._address.host_and_port, proxy.authorization_line)
            inner = await loop.start_tls(transport, connection, self._own_context(), server_hostname=self._server_name)
        except BaseException:
            transport.abort()
            raise
        if inner is None:
            raise ProxyFailed(f"the proxy {proxy.host}:{proxy.port} closed the tunnel; check its log")
        connection.connection_made(inner)

    def _own_context(self) -> ssl.SSLContext:
        if self._context is None:
            options = self._tls if isinstance(self._tls, TlsOptions) else TlsOptions()
            self._context = options.context()
        return self._context

    def _via(self) -> str:
        return f" through the proxy {self._proxy.host}:{self._proxy.port}" if self._proxy is not None else ""


class _Tunnel(asyncio.Protocol):
    """Asks a proxy for a tunnel and collects its answer's head."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    async def open(self, target: str, authorization: bytes) -> None:
        transport = cast(asyncio.Transport, self._transport)
        line = target.encode("idna" if not target.isascii() else "ascii")
        transport.write(b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (line, line, authorization))
        status_line = await self._answer
        parts = status_line.split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
            raise ProxyFailed("the proxy did not answer in HTTP/1.1; check its address and scheme")
        if not 200 <= int(parts[1]) < 300:
            advice = "check its user and password" if parts[1] == b"407" else "check its rules, or NO_PROXY"
            raise ProxyFailed(f"the proxy refused a tunnel to {target} with {parts[1].decode()}; {advice}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if self._answer.done():
            return
        if end and not rest:
            self._answer.set_result(head.split(b"\r\n", 1)[0])
        elif end or len(self._received) > _PROXY_HEAD_LIMIT:
            self._answer.set_exception(ProxyFailed("the proxy's answer is not HTTP/1.1; check its address"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(ProxyFailed("the proxy closed the connection; check its log"))


def _tls_advice(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"{error.verify_message}; check the CA (certificate-authority), the name that the certificate is for "
            "(tls-server-name) and this machine's clock"
        )
    return f"{error.reason or error}; check that the server speaks TLS and accepts the client certificate"
