"""Bytes to requests, without any socket: the half of a server connection that can be tested exhaustively.

`feed` never raises. What it makes of the bytes is a queue of items: whole requests, and at most one refusal, which is
always the last, because after it the two sides no longer agree where a message begins. The parser (llhttp, strict)
refuses the known ways to disagree (both framings, bare line feeds, folded lines, odd numbers); what it lets through
and we do not understand is refused here.
"""

from __future__ import annotations

from collections import deque
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from konverge.wire.body import Body
from konverge.wire.limits import ServerLimits
from konverge.wire.message import SPACE, Headers, Peer, Request

IDLE, HEAD, BODY, STOPPED = range(4)

_SLASH = 0x2F
_CHECKED_FIELDS = frozenset((b"host", b"content-length", b"transfer-encoding", b"expect"))
_METHODS = {method.encode(): method for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")}


class Incoming:
    """A whole request and how its answer is to be framed."""

    __slots__ = ("http_1_0", "keep", "request")

    def __init__(self, request: Request, *, keep: bool, http_1_0: bool) -> None:
        self.request = request
        self.keep = keep
        self.http_1_0 = http_1_0


class Refused(Exception):
    """A request that the wire itself answers. Raised in a callback, it ends the run of the parser."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class _BodyOnly:
    """A reader as the parser of a bare body sees it."""

    __slots__ = ("on_body", "on_message_complete")

    def __init__(self, reader: RequestReader) -> None:
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete


class RequestReader:
    """Feed it what arrives; take requests from `items`."""

    __slots__ = (
        "_begun",
        "_body",
        "_framing",
        "_framing_bytes",
        "_headers",
        "_http_1_0",
        "_keep",
        "_limits",
        "_parser",
        "_peer",
        "_raw_size",
        "_target",
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
        self._body = Body()
        self._framing_bytes = 0
        self.on_message_begin()
        self.phase = IDLE

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes in. Anything after the last message that this connection may carry is ignored."""
        if self._parser is None:
            return
        self._begun = False
        before = self._body.size
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._on_upgrade(bytes(data[upgrade.args[0] :]))
        except HttpParserError as error:
            self._on_parser_error(error)
        else:
            if self.phase == HEAD or self.phase == BODY:
                self._count(len(data), self._body.size > before)

    def refuse(self, status: int, text: str) -> None:
        """Answer with a status of our own when its turn comes, and read nothing more."""
        if self._parser is not None:
            self.items.append(Refused(status, text))
            self.stop()

    def stop(self) -> None:
        self.phase = STOPPED
        self._parser = None  # it refers back to us
        self.wants_continue = False

    def _on_upgrade(self, rest: bytes) -> None:
        """The request stands, as one that may be refused its upgrade; nothing after it is HTTP.

        The parser takes even the body for something else. But a client that asks for HTTP/2 with its first request
        (Java's does) sends a body like any other, so a second parser reads it.
        """
        if self.phase != BODY:
            self.stop()
            self.rest = rest
            return
        line = b"%b / HTTP/1.1\r\nconnection: close\r\n%b\r\n\r\n"
        head = line % (cast(HttpRequestParser, self._parser).get_method(), self._framing)
        self._parser = HttpRequestParser(_BodyOnly(self))
        self.feed(head + rest)

    def _count(self, size: int, body_arrived: bool) -> None:
        """Bound what a message costs beyond what the callbacks saw: endless fields, trailers, chunk extensions."""
        if self._begun:
            return  # how much of these bytes belongs to the message is not known; they are one read at most
        self._raw_size += size
        self._framing_bytes = 0 if body_arrived else self._framing_bytes + size
        head = self._limits.head
        if self.phase == HEAD and self._raw_size > head:
            self.refuse(431, f"the request's head is larger than {head} bytes")
        elif self.phase == BODY and (
            self._framing_bytes > 2 * head or self._raw_size > 2 * head + 16 * self._body.size
        ):
            self.refuse(400, "the request's body is mostly framing")

    def _on_parser_error(self, error: HttpParserError) -> None:
        cause = error.__context__
        if isinstance(cause, Refused):
            self.refuse(cause.status, cause.text)
        elif self.phase != STOPPED:
            self.refuse(400, f"this is not an HTTP/1.1 request: {error}")

    # --- httptools ------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.phase = HEAD
        self._begun = True
        self._url = self._framing = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._raw_size = 0
        self._framing_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        if len(self._url) > self._limits.request_line:
            raise Refused(414, f"the request's target is longer than {self._limits.request_line} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.phase == HEAD:  # later ones are trailers, which are not read
            self._headers.append((name, value.rstrip(SPACE)))
            if len(self._headers) > self._limits.header_fields:
                raise Refused(431, f"the request has more than {self._limits.header_fields} header fields")

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        if version != "1.1" and version != "1.0":
            raise Refused(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        self._http_1_0 = version == "1.0"
        self._keep = parser.should_keep_alive()
        self._check_fields()
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                raise Refused(501, "this server is not a proxy")
            self._keep = False  # whether it is granted or not, nothing after it is HTTP
        url = self._url
        self._target = url.decode("ascii") if url[0] == _SLASH else self._other_target(parser)
        self.phase = BODY
        self._raw_size = self._framing_bytes = 0

    def on_body(self, data: bytes) -> None:
        self._body.add(data)
        if self._body.size > self._limits.body:
            raise self._too_large()

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if self._framing and not self._keep and parser.should_upgrade():
            return  # only its head is: see `_on_upgrade`
        name = parser.get_method()
        method = _METHODS.get(name) or name.decode("ascii")
        request = Request(method, self._target, Headers(self._headers), self._body.take(), peer=self._peer)
        self.items.append(Incoming(request, keep=self._keep, http_1_0=self._http_1_0))
        self.wants_continue = False
        self.phase = IDLE if self._keep else STOPPED

    # --- what the parser leaves to us -----------------------------------------------------------------------------

    def _check_fields(self) -> None:
        """Check the size of the head and the fields that frame the message."""
        size, hosts = len(self._url), 0
        for name, value in self._headers:
            size += len(name) + len(value) + 4
            lowered = name.lower()
            if lowered not in _CHECKED_FIELDS:
                continue
            if lowered == b"host":
                hosts += 1
            elif lowered == b"expect":
                self._expect(value)
            else:
                self._check_framing(lowered, value)
        if size > self._limits.head:
            raise Refused(431, f"the request's head is larger than {self._limits.head} bytes")
        if hosts != 1 and not (self._http_1_0 and hosts == 0):
            raise Refused(400, "a request has exactly one Host field")

    def _check_framing(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            length = int(value)  # the parser has let only digits through
            if length > self._limits.body:
                raise self._too_large()
            if length == 0:
                return
        elif self._http_1_0:
            raise Refused(400, "HTTP/1.0 has no Transfer-Encoding")
        elif value.lower() != b"chunked":
            raise Refused(501, "the only transfer encoding understood here is chunked")
        self._framing = b"%b: %b" % (name, value)

    def _expect(self, value: bytes) -> None:
        if value.lower() != b"100-continue":
            raise Refused(417, "the only expectation understood here is 100-continue")
        self.wants_continue = not self._http_1_0

    def _too_large(self) -> Refused:
        return Refused(413, f"the request's body is larger than {self._limits.body} bytes")

    def _other_target(self, parser: HttpRequestParser) -> str:
        """A target that does not begin with a path: of a whole URL, as proxies get it, only path and query matter."""
        if self._url == b"*" and parser.get_method() == b"OPTIONS":
            return "*"
        try:
            parts = parse_url(self._url)
        except HttpParserError:
            raise Refused(400, "the request's target is no URL") from None
        if not parts.schema:
            raise Refused(400, "the request's target begins with a slash or is a URL")
        return ((parts.path or b"/") + (b"?" + parts.query if parts.query else b"")).decode("ascii")
