"""Making connections: name, TCP, proxy, TLS, within one time limit and with errors that say what to do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from konverge.wire.address import Address
from konverge.wire.connection import Connection, Owner
from konverge.wire.dial import P, dial
from konverge.wire.errors import ConnectFailed, ConnectTimeout, ProxyFailed, TlsFailed, WireError
from konverge.wire.keepalive import keep_alive
from konverge.wire.limits import ClientLimits
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.wire.proxy import Proxy


class Connector:
    """Opens connections to one server."""

    __slots__ = ("_address", "_context", "_limits", "_proxy", "_proxy_context", "_server_name", "_tls")

    def __init__(
        self, address: Address, tls: TlsOptions | ssl.SSLContext | None, proxy: Proxy | None, limits: ClientLimits
    ) -> None:
        self._address = address
        self._tls = tls
        self._proxy = proxy
        self._limits = limits
        self._context: ssl.SSLContext | None = tls if isinstance(tls, ssl.SSLContext) and address.tls else None
        self._proxy_context: ssl.SSLContext | None = None
        wanted = (tls.server_name if isinstance(tls, TlsOptions) else "") or address.bare
        self._server_name = wanted.rstrip(".")  # a name written in full; certificates have none with that dot

    async def connect(self, owner: Owner) -> Connection:
        """A new idle connection. Raises ConnectTimeout or ConnectFailed."""
        connection = Connection(owner, self._limits, self._address.host_and_port)
        await self.reach(connection)
        keep_alive(connection.socket)
        return connection

    async def reach(self, connection: asyncio.Protocol | asyncio.BufferedProtocol) -> None:
        """Connect a protocol of any sort to the server. Raises ConnectTimeout or ConnectFailed."""
        name = self._address.host_and_port
        if self._address.tls and self._context is None:
            self._context = self._made_context()
        try:
            async with asyncio.timeout(self._limits.connect):
                await self._open(connection)
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

    async def _open(self, connection: asyncio.Protocol | asyncio.BufferedProtocol) -> None:
        if self._proxy is None:
            await dial(lambda: connection, self._address.host, self._address.port, self._context, self._server_name)
        elif self._proxy.socks or self._address.tls:
            await self._open_through(self._proxy, connection)
        else:
            await self._reach_proxy(self._proxy, lambda: connection)

    async def _open_through(self, proxy: Proxy, connection: asyncio.Protocol | asyncio.BufferedProtocol) -> None:
        """Talk to the proxy first, then hand the connection over."""
        from konverge.wire.proxy_handshake import ProxyHandshake, ask_for_connection, ask_for_tunnel  # needed by few

        transport, handshake = await self._reach_proxy(proxy, ProxyHandshake)
        try:
            if proxy.socks:
                await ask_for_connection(handshake, self._address.bare, self._address.port, proxy.credentials)
            else:
                await ask_for_tunnel(handshake, self._address.host_and_port, proxy.authorization_line)
            inner: asyncio.Transport | None = transport
            if self._context is not None:
                loop = asyncio.get_running_loop()
                inner = await loop.start_tls(transport, connection, self._context, server_hostname=self._server_name)
        except BaseException:
            transport.abort()
            raise
        if inner is None:
            raise ProxyFailed(f"the proxy {proxy.name} closed the tunnel; check its log")
        if inner is transport:
            transport.set_protocol(connection)
        connection.connection_made(inner)

    async def _reach_proxy(self, proxy: Proxy, protocol: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        """A connection to the proxy itself."""
        if proxy.scheme == "https" and self._proxy_context is None:
            self._proxy_context = TlsOptions().context()
        try:
            return await dial(protocol, proxy.host, proxy.port, self._proxy_context, proxy.host)
        except ssl.SSLError as error:
            raise ProxyFailed(
                f"TLS with the proxy {proxy.name} failed: {error.reason or error}; check that it speaks TLS (else its "
                "URL begins with http://) and that this machine trusts its certificate (SSL_CERT_FILE)"
            ) from error

    def _made_context(self) -> ssl.SSLContext:
        options = self._tls if isinstance(self._tls, TlsOptions) else TlsOptions()
        try:
            return options.context()
        except (OSError, ValueError) as error:  # SSLError is one of them
            raise TlsFailed(
                f"the certificates for {self._address.host_and_port} cannot be used: {error}; check the CA, the client "
                "certificate and the key (PEM, and a key that belongs to its certificate)"
            ) from error

    def _via(self) -> str:
        return f" through the proxy {self._proxy.name}" if self._proxy is not None else ""


def _tls_advice(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"{error.verify_message}; check the CA (certificate-authority), the name that the certificate is for "
            "(tls-server-name) and this machine's clock"
        )
    return f"{error.reason or error}; check that the server speaks TLS and accepts the client certificate"
