"""The vocabulary of both sides of the wire: requests, responses, streams, and the two-method transport.

A `Transport` is whatever can answer a request: a pool of connections, or a server in this very process. A `Handler`
is the other side: a coroutine function that turns a request into a response. Both use the same `Request`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Protocol

_NOTHING: dict[str, bytes] = {}
SPACE = b" \t"
"""What may stand around a field's value and is no part of it; the parser takes only what is before it away."""


class Headers:
    """Header fields in the order of the wire, looked up without regard to case.

    Nothing is decoded before it is read: most answers are read for their status and body alone. A caller who looks once
    usually looks again, so the first look makes an index.
    """

    __slots__ = ("_encoded", "_index", "_indexed", "_raw")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._raw: list[tuple[bytes, bytes]] = raw if isinstance(raw, list) else list(raw)
        self._index: dict[str, bytes] = _NOTHING
        self._indexed = -1
        self._encoded: tuple[object, int, bytes] | None = None

    @classmethod
    def of(cls, fields: dict[str, str]) -> Headers:
        return cls([(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()])

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field, or the default."""
        value = self._first().get(name.lower())
        return default if value is None else value.decode("latin-1")

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower().encode("latin-1")
        return [value.decode("latin-1") for key, value in self._raw if key.lower() == wanted]

    def add(self, name: str, value: str) -> None:
        self._raw.append((name.lower().encode("latin-1"), value.encode("latin-1")))

    def _first(self) -> dict[str, bytes]:
        """The first value of each field. Built again when fields were added, also through `raw`."""
        raw = self._raw
        if self._indexed != len(raw):
            self._index = {key.decode("latin-1").lower(): value for key, value in reversed(raw)}
            self._indexed = len(raw)
        return self._index

    def encoded_for(self, encoder: object) -> bytes | None:
        """What `keep_encoded` was given by this encoder, unless fields were added since."""
        kept = self._encoded
        return kept[2] if kept is not None and kept[0] is encoder and kept[1] == len(self._raw) else None

    def keep_encoded(self, encoder: object, fields: bytes) -> None:
        self._encoded = (encoder, len(self._raw), fields)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._first()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        # Values may be credentials, so only the names are shown.
        return f"Headers({', '.join(name for name, _ in self)})"

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        return self._raw


class Peer:
    """Who is at the other end of a server connection: its address and its client certificate (DER), if any."""

    __slots__ = ("address", "certificate")

    def __init__(self, address: str = "", certificate: bytes | None = None) -> None:
        self.address = address
        self.certificate = certificate


LOCAL_PEER = Peer("in-process")


class Request:
    """One request. `target` is the path with its query, percent-encoded, as it stands on the request line."""

    __slots__ = ("body", "headers", "method", "peer", "target", "timeout")

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
        peer: Peer = LOCAL_PEER,
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers if headers is not None else Headers()
        self.body = body
        self.timeout = timeout
        self.peer = peer

    def __repr__(self) -> str:
        # A query may carry a token, so only the path is shown.
        return f"Request({self.method} {self.target.partition('?')[0]}, {len(self.body)} bytes)"


class Writer(Protocol):
    """What a handler writes to. `write` never blocks."""

    def write(self, data: bytes) -> None:
        """Send. Ignored once the reader has gone (`closed`)."""

    async def drain(self) -> None:
        """Wait until the reader has taken most of what was written. Raises ConnectionError when it has gone."""

    @property
    def closed(self) -> bool: ...


class Sink(Writer, Protocol):
    """Where a streaming handler writes, in chunks. A slow reader shows in `buffered`."""

    @property
    def buffered(self) -> int:
        """Bytes written and not yet taken."""


Producer = Callable[[Sink], Awaitable[None]]
"""Writes a streaming body; the stream ends when it returns, and is cut off when it raises."""


class Duplex(Writer, Protocol):
    """Both directions of a connection that no longer speaks HTTP."""

    async def read(self) -> bytes:
        """What has arrived since the last time, at least one byte; nothing once the other side has ended."""


Upgrade = Callable[[Duplex], Awaitable[None]]
"""What goes on after a 101; the connection is closed when it returns."""


class Response:
    """One answer: a whole body, a producer that streams one, or (with status 101) what follows on the connection."""

    __slots__ = ("body", "headers", "producer", "status", "upgrade")

    def __init__(
        self,
        status: int,
        headers: Headers | None = None,
        body: bytes = b"",
        *,
        producer: Producer | None = None,
        upgrade: Upgrade | None = None,
    ) -> None:
        self.status = status
        self.headers = headers if headers is not None else Headers()
        self.body = body
        self.producer = producer
        self.upgrade = upgrade

    def __repr__(self) -> str:
        return f"Response({self.status}, {'stream' if self.producer else f'{len(self.body)} bytes'})"


Handler = Callable[[Request], Awaitable[Response]]


class Stream(Protocol):
    """A streaming answer on the client's side. Iterate over it for chunks; close it when done (idempotent)."""

    status: int
    headers: Headers

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """The rest of the body."""

    async def aclose(self) -> None: ...


class Transport(Protocol):
    """Anything that answers requests."""

    async def send(self, request: Request) -> Response:
        """One exchange with the whole body in memory."""

    async def stream(self, request: Request) -> Stream:
        """One exchange whose body is read as it comes. Reading slowly slows the sender down."""


class UpgradingTransport(Transport, Protocol):
    """A transport that can leave HTTP as well."""

    async def upgrade(self, request: Request) -> Response:
        """Ask for an upgrade. After a 101 the answer's `upgrade` is what follows; any other answer is whole."""
