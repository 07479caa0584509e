"""What can go wrong on the wire, as one tree.

    WireError (ConnectionError)
    ├── NotSent               nothing of the request reached a server: every request may be tried again
    │   ├── ConnectFailed     no connection: refused, no such host, unreachable
    │   │   ├── TlsFailed     the TLS handshake failed
    │   │   └── ProxyFailed   the proxy refused or did not speak HTTP
    │   ├── ConnectTimeout    no connection within the limit
    │   ├── PoolTimeout       every connection of the pool stayed busy
    │   └── PoolClosed        the pool was closed
    ├── ConnectionLost        the connection ended before the answer did; the request may have taken effect
    │   └── StaleConnection   a kept-alive connection had been closed before the first byte of the answer
    ├── ReadTimeout           the server stayed silent for too long
    ├── TotalTimeout          the exchange took longer than the request allowed
    ├── ProtocolError         the server's bytes are not HTTP/1.1
    └── BodyTooLarge          the answer is larger than the caller allows

The one question a caller has is "may I send it again?", so the tree's first branch answers it.
"""

from __future__ import annotations


class WireError(ConnectionError):
    """Any failure of an exchange that is not an answer of the server."""


class NotSent(WireError):
    """Nothing of the request reached a server, so it is safe to send it again."""


class ConnectFailed(NotSent):
    """No connection could be made."""


class TlsFailed(ConnectFailed):
    """The TLS handshake failed."""


class ProxyFailed(ConnectFailed):
    """The proxy refused the connection or did not speak HTTP."""


class ConnectTimeout(NotSent, TimeoutError):
    """No connection within the limit."""


class PoolTimeout(NotSent, TimeoutError):
    """Every connection of the pool stayed busy for too long."""


class PoolClosed(NotSent):
    """The pool was closed."""


class ConnectionLost(WireError):
    """The connection ended before the answer did. The request may have taken effect."""


class StaleConnection(ConnectionLost):
    """A kept-alive connection turned out closed before the first byte of an answer."""


class ReadTimeout(WireError, TimeoutError):
    """The server stayed silent for longer than the limit."""


class TotalTimeout(WireError, TimeoutError):
    """The whole exchange took longer than the request allowed."""


class ProtocolError(WireError):
    """The other side's bytes are not HTTP/1.1 as we understand it."""


class BodyTooLarge(WireError):
    """The answer is larger than the caller allows."""
