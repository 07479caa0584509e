"""Bytes to requests, without any socket: the half of a server connection that can be tested exhaustively.

`feed` never raises. What it makes of the bytes is a queue of items: whole requests, and at most one refusal, which is
always the last, because after it the two sides no longer agree where a message begins. The parser (llhttp, strict)
refuses the known ways to disagree (both framings, bare line feeds, folded lines, odd numbers); what it lets through
and we do not understand is refused here.
"""

from __future__ import annotations

from collections import deque

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from konverge.wire.limits import ServerLimits
from konverge.wire.message import Headers, Peer, Request

IDLE, HEAD, BODY, STOPPED = range(4)

_TO_LOOK_AT = frozenset((b"host", b"content-length", b"transfer-encoding", b"expect"))
_METHODS = {method.encode(): method for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")}


class Incoming:
    """A whole request and how its answer is to be framed."""

    __slots__ = ("http_1_0", "keep", "request")

    def __init__(self, request: Request, *, keep: bool, http_1_0: bool) -> None:
        self.request = request
        self.keep = keep
        self.http_1_0 = http_1_0


class Refused:
    """A request that gets no further than the wire."""

    __slots__ = ("status", "text")

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.text = text


class _Refuse(Exception):
    """Ends the parser's run from within a callback."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class RequestReader:
    """Feed it what arrives; take requests from `items`."""

    __slots__ = (
        "_begun",
        "_body",
        "_headers",
        "_http_1_0",
        "_keep",
        "_limits",
        "_parser",
        "_peer",
        "_raw_size",
        "_size",
        "_url",
        "items",
        "phase",
        "rest",
        "wants_continue",
    )

    def __init__(self, limits: ServerLimits, peer: Peer) -> None:
        self._limits = limits
        self._peer = peer
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self.items: deque[Incoming | Refused] = deque()
        self.phase = IDLE
        self.rest: bytes | None = None
        """What came after a request for an upgrade, for whatever follows if it is granted; None without such one."""
        self.wants_continue = False
        self._keep = True
        self._http_1_0 = False
        self.on_message_begin()
        self.phase = IDLE

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes in. Anything after the last message that this connection may carry is ignored."""
        if self._parser is None:
            return
        self._begun = False
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.stop()  # the request stands, as one that may be refused its upgrade; nothing after it is HTTP
            self.rest = bytes(data[upgrade.args[0] :])
        except HttpParserError as error:
            self._on_parser_error(error)
        else:
            if self.phase == HEAD or self.phase == BODY:
                self._count(len(data))

    def refuse(self, status: int, text: str) -> None:
        """Answer with a status of our own when its turn comes, and read nothing more."""
        if self._parser is not None:
            self.items.append(Refused(status, text))
            self.stop()

    def stop(self) -> None:
        self.phase = STOPPED
        self._parser = None  # it refers back to us
        self.wants_continue = False

    def _count(self, size: int) -> None:
        """Bound what a message costs beyond what the callbacks saw: an endless field, endless chunk extensions."""
        if self._begun:
            return  # how much of these bytes belongs to the message is not known; they are one read at most
        self._raw_size += size
        if self.phase == HEAD and self._raw_size > self._limits.head:
            self.refuse(431, f"the request's head is larger than {self._limits.head} bytes")
        elif self.phase == BODY and self._raw_size > 2 * self._limits.head + 16 * self._size:
            self.refuse(400, "the request's body is mostly framing")

    def _on_parser_error(self, error: HttpParserError) -> None:
        cause = error.__context__
        if isinstance(cause, _Refuse):
            self.refuse(cause.status, cause.text)
        elif self.phase != STOPPED:
            self.refuse(400, f"this is not an HTTP/1.1 request: {error}")

    # --- httptools ------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.phase = HEAD
        self._begun = True
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._raw_size = 0

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        if len(self._url) > self._limits.request_line:
            raise _Refuse(414, f"the request's target is longer than {self._limits.request_line} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.phase == HEAD:  # later ones are trailers, which nobody reads
            self._headers.append((name, value))
            if len(self._headers) > self._limits.header_fields:
                raise _Refuse(431, f"the request has more than {self._limits.header_fields} header fields")

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        if version != "1.1" and version != "1.0":
            raise _Refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        self._http_1_0 = version == "1.0"
        self._keep = parser.should_keep_alive()
        bodied = self._look_at_fields()
        if parser.should_upgrade():
            self._refuse_upgrade(parser, bodied)
            self._keep = False
        self.phase = BODY
        self._raw_size = 0

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._size += len(data)
        if self._size > self._limits.body:
            raise self._too_large()

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        name = parser.get_method()
        method = _METHODS.get(name) or name.decode("ascii")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(method, self._target(), Headers(self._headers), body, peer=self._peer)
        self.items.append(Incoming(request, keep=self._keep, http_1_0=self._http_1_0))
        self._body = []  # an idle connection must not keep its last request in memory
        self.wants_continue = False
        self.phase = IDLE if self._keep else STOPPED

    # --- what the parser leaves to us -----------------------------------------------------------------------------

    def _look_at_fields(self) -> bool:
        """Check the fields that frame the message; says whether there is a body."""
        size, hosts, bodied = len(self._url), 0, False
        for name, value in self._headers:
            size += len(name) + len(value) + 4
            lowered = name.lower()
            if lowered not in _TO_LOOK_AT:
                continue
            if lowered == b"host":
                hosts += 1
            elif lowered == b"expect":
                self._expect(value)
            else:
                bodied = self._look_at_framing(lowered, value) or bodied
        if size > self._limits.head:
            raise _Refuse(431, f"the request's head is larger than {self._limits.head} bytes")
        if hosts != 1 and not (self._http_1_0 and hosts == 0):
            raise _Refuse(400, "a request has exactly one Host field")
        return bodied

    def _look_at_framing(self, name: bytes, value: bytes) -> bool:
        if name == b"content-length":
            length = int(value)  # the parser has let only digits through
            if length > self._limits.body:
                raise self._too_large()
            return length > 0
        if self._http_1_0:
            raise _Refuse(400, "HTTP/1.0 has no Transfer-Encoding")
        if value.lower() != b"chunked":
            raise _Refuse(501, "the only transfer encoding understood here is chunked")
        return True

    def _expect(self, value: bytes) -> None:
        if value.lower() != b"100-continue":
            raise _Refuse(417, "the only expectation understood here is 100-continue")
        self.wants_continue = not self._http_1_0

    def _refuse_upgrade(self, parser: HttpRequestParser, bodied: bool) -> None:
        if parser.get_method() == b"CONNECT":
            raise _Refuse(501, "this server is not a proxy")
        if bodied:
            raise _Refuse(400, "a request that asks for an upgrade has no body here")

    def _too_large(self) -> _Refuse:
        return _Refuse(413, f"the request's body is larger than {self._limits.body} bytes")

    def _target(self) -> str:
        url = self._url
        if url[:1] != b"/" and url != b"*":  # absolute form, as sent to proxies
            parts = parse_url(url)
            url = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
        return url.decode("ascii")
