"""HTTP/1.1 for both sides, on asyncio protocols and httptools. Knows nothing of Kubernetes.

A client is a `Transport`: `ConnectionPool` over sockets, `Direct` over a handler in this process. A `Server` serves
a handler on sockets. The names below are loaded when they are first used: a program that only talks in process
imports no sockets' code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.wire.errors import BodyTooLarge as BodyTooLarge
    from konverge.wire.errors import ConnectFailed as ConnectFailed
    from konverge.wire.errors import ConnectionLost as ConnectionLost
    from konverge.wire.errors import ConnectTimeout as ConnectTimeout
    from konverge.wire.errors import NotSent as NotSent
    from konverge.wire.errors import PoolClosed as PoolClosed
    from konverge.wire.errors import PoolTimeout as PoolTimeout
    from konverge.wire.errors import ProtocolError as ProtocolError
    from konverge.wire.errors import ProxyFailed as ProxyFailed
    from konverge.wire.errors import ReadTimeout as ReadTimeout
    from konverge.wire.errors import StaleConnection as StaleConnection
    from konverge.wire.errors import TlsFailed as TlsFailed
    from konverge.wire.errors import TotalTimeout as TotalTimeout
    from konverge.wire.errors import WireError as WireError
    from konverge.wire.handler import Refusal as Refusal
    from konverge.wire.handler import plain_refusal as plain_refusal
    from konverge.wire.in_process import Direct as Direct
    from konverge.wire.limits import ClientLimits as ClientLimits
    from konverge.wire.limits import ServerLimits as ServerLimits
    from konverge.wire.message import LOCAL_PEER as LOCAL_PEER
    from konverge.wire.message import Handler as Handler
    from konverge.wire.message import Headers as Headers
    from konverge.wire.message import Peer as Peer
    from konverge.wire.message import Producer as Producer
    from konverge.wire.message import Request as Request
    from konverge.wire.message import Response as Response
    from konverge.wire.message import Sink as Sink
    from konverge.wire.message import Stream as Stream
    from konverge.wire.message import Transport as Transport
    from konverge.wire.pool import ConnectionPool as ConnectionPool
    from konverge.wire.proxy import Proxy as Proxy
    from konverge.wire.proxy import proxy_from_environment as proxy_from_environment
    from konverge.wire.server import Server as Server
    from konverge.wire.tls import TlsOptions as TlsOptions
    from konverge.wire.tls import server_context as server_context

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.wire.errors": (
            "BodyTooLarge ConnectFailed ConnectTimeout ConnectionLost NotSent PoolClosed PoolTimeout "
            "ProtocolError ProxyFailed ReadTimeout StaleConnection TlsFailed TotalTimeout WireError"
        ),
        "konverge.wire.handler": "Refusal plain_refusal",
        "konverge.wire.in_process": "Direct",
        "konverge.wire.limits": "ClientLimits ServerLimits",
        "konverge.wire.message": "Handler Headers LOCAL_PEER Peer Producer Request Response Sink Stream Transport",
        "konverge.wire.pool": "ConnectionPool",
        "konverge.wire.proxy": "Proxy proxy_from_environment",
        "konverge.wire.server": "Server",
        "konverge.wire.tls": "TlsOptions server_context",
    },
)
