"""One connection of the client: an asyncio protocol that runs one exchange at a time.

The protocol is a small state machine (`IDLE → HEAD → BODY → DONE → IDLE`, or `CLOSED` from anywhere) driven by the
parser's callbacks. An exchange is a future: `start` writes the request and returns it, the last byte (or, for a
stream, the last header field) resolves it. No task runs here.

What keeps the pool healthy: a connection goes back only from `DONE`, with nothing unread and nothing unsent;
anything else, a cancelled exchange above all, closes it.
"""

from __future__ import annotations

import asyncio
import select
import socket
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from konverge.wire.body import Body
from konverge.wire.deadline import TICK, Alarm
from konverge.wire.encode import JOIN_LIMIT
from konverge.wire.errors import (
    BodyTooLarge,
    ConnectionLost,
    ProtocolError,
    ReadTimeout,
    StaleConnection,
    TotalTimeout,
    WireError,
)
from konverge.wire.inflate import inflate, too_large
from konverge.wire.limits import ClientLimits
from konverge.wire.message import SPACE, Headers, Response
from konverge.wire.stream import ResponseStream
from konverge.wire.tls import peer_ended_tls
from konverge.wire.transports import unsent_bytes

IDLE, HEAD, BODY, DONE, CLOSED = range(5)
_JUST_NOW = 0.005
"""Seconds: a server that has answered so shortly ago has not lost its patience yet."""

Answer = Response | ResponseStream


class Owner(Protocol):
    """The owner of connections (the pool)."""

    arrivals: memoryview
    """Where bytes arrive, for all connections: each takes its own out before the next gets any."""

    def connection_idle(self, connection: Connection) -> None:
        """The exchange ended well; the connection may be used again."""

    def connection_closed(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """A socket to one server. Call `start` only when it is idle.

    Buffered, because a TLS transport would otherwise ask for a quarter of a megabyte of fresh memory for each read.
    """

    __slots__ = (
        "_alarm",
        "_answer",
        "_body",
        "_body_arrived",
        "_deadline",
        "_error",
        "_framing_bytes",
        "_gzip",
        "_headers",
        "_idle_since",
        "_is_head",
        "_keep",
        "_limits",
        "_loop",
        "_owner",
        "_parser",
        "_paused",
        "_phase",
        "_poll",
        "_sealed",
        "_silence",
        "_size",
        "_status",
        "_stream",
        "_streaming",
        "_tls_ended",
        "_transport",
        "_unsent",
        "_until_eof",
        "_untouched",
        "_uses",
        "name",
    )

    def __init__(self, owner: Owner, limits: ClientLimits, name: str) -> None:
        self.name = name
        self._owner = owner
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._on_alarm)
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._phase = IDLE
        self._uses = 0
        self._idle_since = 0.0
        self._error: WireError | None = None
        self._poll: select.poll | None = None
        self._sealed = self._paused = False
        self._body = Body()
        self._reset(None)

    def _reset(self, answer: asyncio.Future[Answer] | None) -> None:
        self._answer = answer
        self._stream: ResponseStream | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._size = self._framing_bytes = self._unsent = 0
        self._gzip = self._keep = self._until_eof = self._tls_ended = self._body_arrived = False
        self._untouched = True

    # --- the exchange, for the pool -------------------------------------------------------------------------------

    def start(
        self, head: bytes, body: bytes, *, is_head: bool, streaming: bool, deadline: float | None
    ) -> asyncio.Future[Answer]:
        """Send a request. The future gives a Response, or a ResponseStream when `streaming`."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._reset(answer)
        self._is_head = is_head
        self._streaming = streaming
        self._deadline = deadline
        self._phase = HEAD
        self._uses += 1
        transport = self._transport
        assert transport is not None
        if len(body) <= JOIN_LIMIT:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
            self._unsent = unsent_bytes(transport)
        self._expect_bytes()
        return answer

    def abandon(self, answer: asyncio.Future[Answer]) -> None:
        """The caller was cancelled: close, unless the exchange is over and the connection has moved on."""
        if self._answer is answer:
            self.abort()

    @property
    def usable(self) -> bool:
        return self._phase == IDLE and self._transport is not None and not self._transport.is_closing()

    @property
    def socket(self) -> socket.socket | None:
        return cast("socket.socket | None", self._transport.get_extra_info("socket")) if self._transport else None

    def silent(self) -> bool:
        """Whether nothing waits to be read from an idle socket: an end of stream would."""
        if self._loop.time() - self._idle_since < _JUST_NOW:
            return True
        if self._poll is None:
            sock = self.socket
            if sock is None or not hasattr(select, "poll"):
                return True
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def close(self) -> None:
        """Close an idle connection."""
        if self._transport is not None:
            self._transport.close()

    def abort(self, error: WireError | None = None) -> None:
        """Cut the connection; an exchange in progress ends with the error."""
        self._error = self._error or error
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.BufferedProtocol ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._sealed = transport.get_extra_info("ssl_object") is not None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._owner.arrivals

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._owner.arrivals[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        if self._phase == IDLE or self._parser is None:
            self.abort()  # no request is pending: a 408 of a server that closes, or a broken server
            return
        self._untouched = False
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._on_parser_error(error)
            return
        if self._phase == DONE:
            self._finish()
        elif self._phase == HEAD:
            self._size += len(data)
            if self._size > self._limits.head:
                self.abort(ProtocolError(f"{self.name} sent more than {self._limits.head} bytes of header fields"))
        else:
            self._bound_framing(len(data))
            if not self._streaming:
                self._expect_bytes()

    def eof_received(self) -> bool | None:
        if self._until_eof and self._sealed:
            self._tls_ended = peer_ended_tls(self._transport)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._alarm.cancel()
        phase, self._phase = self._phase, CLOSED
        if phase == BODY and self._until_eof and self._ended_well(error):
            self._settle()
        elif phase in (HEAD, BODY):
            self._fail(self._error or self._lost(error))
        self._parser = None
        self._owner.connection_closed(self)

    # --- httptools ------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == HEAD:  # later ones are trailers, which are not read
            self._headers.append((name, value.rstrip(SPACE)))

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if self._phase != HEAD:
            raise ProtocolError("bytes after the end of the answer")
        status = parser.get_status_code()
        if status < 200:
            self._headers = []
            return
        if len(self._headers) > self._limits.header_fields:
            raise ProtocolError(f"{self.name} sent more than {self._limits.header_fields} header fields")
        self._status = status
        self._keep = parser.should_keep_alive()
        self._read_fields(status)
        self._phase = BODY
        self._size = 0
        if self._streaming:
            self._begin_stream()
        if self._is_head:
            self._phase = DONE

    def on_body(self, data: bytes) -> None:
        if self._phase != BODY:
            raise ProtocolError("a body where none belongs")
        self._body_arrived = True
        if self._stream is not None:
            self._stream.push(data)
            return
        self._body.add(data)
        if self._limits.body is not None and self._body.size > self._limits.body:
            raise too_large(self._limits.body)

    def on_message_complete(self) -> None:
        if self._phase == BODY:
            self._phase = DONE

    # --- Source, for the stream -----------------------------------------------------------------------------------

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()
            self._expect_bytes()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def reader_waits(self) -> None:
        self._expect_bytes(self._limits.stream_read)

    async def discard(self, stream: ResponseStream) -> None:
        if self._stream is stream:
            self.abort()

    # --- the state machine's inner steps --------------------------------------------------------------------------

    def _expect_bytes(self, silence: float | None = None) -> None:
        """Set the alarm to the end of the exchange's time or of the server's permitted silence."""
        if self._stream is None:
            silence = self._limits.read
        self._silence = silence
        deadline = self._deadline
        if silence is not None:
            until = self._loop.time() + silence
            deadline = until if deadline is None or until < deadline else deadline
        self._alarm.set(deadline)

    def _on_alarm(self) -> None:
        if self._phase == IDLE:
            self.close()
        elif self._deadline is not None and self._loop.time() + TICK >= self._deadline:
            self.abort(TotalTimeout(f"{self.name} did not finish its answer in time; allow more time or ask for less"))
        elif self._stream is not None and not self._stream.awaited:
            self._expect_bytes()  # the reader is busy with what came; its next wait sets the alarm again
        elif self._still_sending():
            self._expect_bytes()
        else:
            self.abort(
                ReadTimeout(
                    f"{self.name} has been silent for {self._silence:g} s; "
                    "check that it is healthy and reachable, or raise the read limit"
                )
            )

    def _still_sending(self) -> bool:
        """Whether the server has taken more of a large request since the last look: it listens, so it is not silent."""
        before, self._unsent = self._unsent, unsent_bytes(self._transport) if self._transport else 0
        return self._unsent < before

    def _bound_framing(self, size: int) -> None:
        """Bound what comes between two pieces of a body: endless trailers would all be kept by the parser."""
        if self._body_arrived:
            self._body_arrived = False
            self._framing_bytes = 0
            return
        self._framing_bytes += size
        if self._framing_bytes > self._limits.head:
            self.abort(ProtocolError(f"{self.name} sent more than {self._limits.head} bytes of framing and trailers"))

    def _read_fields(self, status: int) -> None:
        bodiless = self._is_head or status in (204, 304)
        framed = False
        for name, value in self._headers:
            if not 14 <= len(name) <= 17:  # none of the three below
                continue
            lowered = name.lower()
            if lowered == b"content-length":
                framed = True
            elif lowered == b"content-encoding":
                self._gzip = value.lower() in (b"gzip", b"x-gzip") and not bodiless
            elif lowered == b"transfer-encoding":
                framed = True
                if value.lower() != b"chunked":
                    raise ProtocolError(f"{self.name} uses a transfer encoding other than chunked")
        self._until_eof = not framed and not bodiless
        if self._gzip:
            self._headers = [
                (name, value)
                for name, value in self._headers
                if name.lower() not in (b"content-encoding", b"content-length")
            ]

    def _begin_stream(self) -> None:
        limits = self._limits
        stream = ResponseStream(
            self,
            self._status,
            Headers(self._headers),
            high=limits.stream_buffer,
            gzip=self._gzip,
            body_limit=limits.body,
            sealed=self._sealed,
        )
        self._stream = stream
        self._expect_bytes()
        answer = self._answer
        if answer is not None and not answer.done():
            answer.set_result(stream)

    def _finish(self) -> None:
        """The answer is complete: give it out, then the connection goes back or is closed."""
        transport = self._transport
        assert transport is not None
        reusable = self._keep and not transport.is_closing() and not unsent_bytes(transport)
        if reusable and self._is_head:
            self._parser = HttpResponseParser(self)  # the old one still waits for the body that HEAD has not
        self._phase = IDLE
        self._settle()
        if not reusable:
            transport.abort()
            return
        if self._paused:
            self.resume()  # its reader has not read it all, but the next exchange needs the socket
        idle = self._limits.idle
        self._idle_since = now = self._loop.time()
        self._alarm.set(None if idle is None else now + idle)
        self._owner.connection_idle(self)

    def _settle(self) -> None:
        answer, self._answer = self._answer, None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end()
            return
        body = self._body.take()  # an idle connection must not keep its last answer in memory
        if answer is None or answer.done():
            return
        try:
            if self._gzip:
                body = inflate(body, self._limits.body, sealed=self._sealed)
        except WireError as error:
            answer.set_exception(error)
        else:
            answer.set_result(Response(self._status, Headers(self._headers), body))

    def _on_parser_error(self, error: HttpParserError | HttpParserUpgrade) -> None:
        if self._phase == DONE:  # the answer is whole; what follows it is not for us
            self._keep = False
            self._finish()
            return
        cause = error.__context__
        if not isinstance(cause, (ProtocolError, BodyTooLarge)):
            cause = ProtocolError(f"{self.name} did not answer in HTTP/1.1 ({error}); check the scheme and the port")
        self.abort(cause)

    def _ended_well(self, error: Exception | None) -> bool:
        """Whether the end of the connection is the end of the body: over TLS only a close_notify proves it, since
        anyone on the path can close the TCP connection."""
        return error is None and self._error is None and (self._tls_ended or not self._sealed)

    def _lost(self, error: Exception | None) -> WireError:
        reason = f" ({error})" if error is not None else ""
        if self._untouched and self._uses > 1:
            return StaleConnection(
                f"{self.name} closed a kept-alive connection just as it was used{reason}; "
                "whether the request took effect is not known: read before trying again"
            )
        when = "before it answered" if self._untouched else "in the middle of an answer"
        return ConnectionLost(f"{self.name} closed the connection {when}{reason}; read before trying again")

    def _fail(self, error: WireError) -> None:
        answer, self._answer = self._answer, None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.fail(error)
        elif answer is not None and not answer.done():
            answer.set_exception(error)
