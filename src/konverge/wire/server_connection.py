"""One connection of the server: an asyncio protocol that answers requests in their order.

`RequestReader` makes requests and refusals of the bytes. One task at a time works through them and ends when there
are none left, so an idle connection has no task and a pipelined burst has one. Reading pauses when many requests
wait, and no request is begun while the peer does not take its answers.

A peer that closes its sending side may still wait for its answer, so a handler goes on; a stream has no end to wait
for, so its producer is cancelled. A lost connection cancels whatever works for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol, cast

from konverge.wire.deadline import Alarm
from konverge.wire.encode import JOIN_LIMIT, response_head
from konverge.wire.handler import Refusal, answer, log, refuse
from konverge.wire.keepalive import keep_alive
from konverge.wire.limits import ServerLimits
from konverge.wire.message import Handler, Peer, Producer, Response, Upgrade
from konverge.wire.request_reader import HEAD, IDLE, STOPPED, Incoming, Refused, RequestReader
from konverge.wire.sink import BUFFER, ChunkSink, Tunnel
from konverge.wire.transports import unsent_bytes

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE = b"connection: close\r\n"
_UPGRADE = b"connection: Upgrade\r\n"
_KEEP_ALIVE = b"connection: keep-alive\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n"
_FAIRNESS = 16
"""One read may bring thousands of requests, and a handler may never wait: after so many of them others get a turn."""


class Host(Protocol):
    """The server, as its connections see it."""

    handler: Handler
    refusal: Refusal
    limits: ServerLimits
    arrivals: memoryview
    """Where bytes arrive, for all connections: each takes its own out before the next gets any."""

    def admit(self, connection: ServerConnection) -> bool:
        """Count a new connection; False when there are too many."""

    def forget(self, connection: ServerConnection) -> None:
        """The connection is closed and nothing works for it any more."""


class ServerConnection(asyncio.BufferedProtocol):
    """A client's socket.

    Buffered, because a TLS transport would otherwise ask for a quarter of a megabyte of fresh memory for each read.
    """

    __slots__ = (
        "_admitted",
        "_alarm",
        "_cut_short",
        "_half_closed",
        "_host",
        "_input_ignored",
        "_last",
        "_loop",
        "_lost",
        "_made",
        "_read_paused",
        "_reader",
        "_sink",
        "_task",
        "_timed",
        "_transport",
        "_tunnel",
        "_unsent",
        "_writable",
        "_write_paused",
    )

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._alarm = Alarm(loop, self._on_alarm)
        self._task: asyncio.Task[None] | None = None
        self._sink: ChunkSink | None = None
        self._tunnel: Tunnel | None = None
        self._writable: asyncio.Future[None] | None = None
        self._timed = IDLE
        self._unsent = 0
        self._admitted = True
        self._made = self._lost = self._last = self._input_ignored = self._half_closed = False
        self._read_paused = self._write_paused = self._cut_short = False

    # --- for the server -------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Close as soon as what was begun is answered."""
        self._last = True
        if self._tunnel is not None:
            self._tunnel.end()  # it has no end of its own to wait for
        if self._task is None and self._reader.phase in (IDLE, STOPPED):
            self._close()

    def abort(self) -> None:
        self._transport.abort()

    def give_up(self) -> None:
        """The connection was cancelled while it was made: event loops differ in whether they report its end, so it is
        reported here."""
        if self._made and not self._lost:
            self._transport.abort()
            self.connection_lost(None)

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._made = True
        limits = self._host.limits
        self._transport.set_write_buffer_limits(high=limits.write_buffer)
        keep_alive(self._transport.get_extra_info("socket"))
        self._reader = RequestReader(limits, _peer(self._transport))
        self._admitted = self._host.admit(self)
        self._alarm.set(self._loop.time() + limits.head_time)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._host.arrivals

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._host.arrivals[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        if self._input_ignored:
            return
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        if self._reader.rest is not None:
            self._early(self._reader.rest, data)
        elif self._admitted:
            self._reader.feed(data)
        else:  # answered only now, since an answer before the question confuses clients
            self._reader.refuse(503, "this server has too many connections; try again later")
        self._proceed()

    def _early(self, before: bytes, data: bytes | memoryview) -> None:
        """Bytes behind a request for an upgrade that has not been answered: whatever follows may want them."""
        self._reader.rest = before + data
        if len(before) + len(data) > BUFFER and not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        if self._tunnel is not None:
            self._tunnel.end()
            return self._transport.get_extra_info("sslcontext") is None
        if self._task is None or self._sink is not None or self._transport.get_extra_info("sslcontext") is not None:
            return False
        self._last = self._half_closed = True
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._alarm.cancel()
        self._reader.stop()
        self._reader.items.clear()
        if self._sink is not None:
            self._sink.close()
        if self._tunnel is not None:
            self._tunnel.end()
        self.resume_writing()
        if self._task is None:
            self._host.forget(self)
        else:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._write_paused = True
        if self._sink is not None:
            self._sink.pause()
        if self._tunnel is not None:
            self._tunnel.pause()

    def resume_writing(self) -> None:
        self._write_paused = False
        if self._sink is not None:
            self._sink.resume()
        if self._tunnel is not None:
            self._tunnel.resume()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    # --- the work -------------------------------------------------------------------------------------------------

    def _proceed(self) -> None:
        """After bytes came: begin to work, or wait for more, with the time that what we wait for may take."""
        reader = self._reader
        if reader.items:
            if self._task is None:
                self._task = self._loop.create_task(self._work(), name="konverge.wire.server")
            if len(reader.items) > self._host.limits.pipeline and not self._read_paused:
                self._read_paused = True
                self._transport.pause_reading()
        elif self._task is None:
            if reader.wants_continue:
                reader.wants_continue = False
                self._transport.write(_CONTINUE)
            if reader.phase != self._timed:
                self._set_alarm()

    async def _work(self) -> None:
        items = self._reader.items
        answered = 0
        try:
            while items and not self._input_ignored:
                item = items.popleft()
                answered += 1
                if answered % _FAIRNESS == 0:
                    await asyncio.sleep(0)
                if isinstance(item, Refused):
                    self._refuse(item)
                else:
                    await self._answer(item)
                if self._write_paused:
                    await self._until_writable()
        finally:
            self._task = None
            self._rest()

    def _rest(self) -> None:
        """Nothing to do: wait for the next request, or go."""
        if self._lost:
            self._host.forget(self)
        elif self._input_ignored or self._transport.is_closing():
            return  # its end is on the way
        elif self._reader.items:  # the work was cut off by an exception of no known kind
            self._transport.abort()
        elif self._cut_short:
            self._linger()
        elif self._last or self._reader.phase == STOPPED:
            self._close()
        else:
            if self._read_paused:
                self._read_paused = False
                self._transport.resume_reading()
            self._set_alarm()
            self._proceed()

    async def _answer(self, item: Incoming) -> None:
        host = self._host
        done = False
        try:
            response = await answer(host.handler, item.request, host.refusal)
            if not self._transport.is_closing():  # as it is before we hear of its loss
                await self._write(item, response)
            else:
                await self._let_go(response)
            done = True
        finally:
            if not done and not self._lost:
                self._input_ignored = True  # the handler was cancelled by its own side: there is no answer to give
                self._transport.abort()

    async def _let_go(self, response: Response) -> None:
        """The client went before its answer: what the handler opened for it ends as for a connection that is lost."""
        with suppress(Exception):
            if response.upgrade is not None:
                tunnel = Tunnel(self._transport, paused=False)
                tunnel.end()
                await response.upgrade(tunnel)
            elif response.producer is not None:
                sink = ChunkSink(self._transport, chunked=True, paused=False)
                sink.close()
                await response.producer(sink)

    async def _write(self, item: Incoming, response: Response) -> None:
        if response.upgrade is not None:
            await self._switch(item, response, response.upgrade)
            return
        keep = self._keeps(item, response)
        if not keep:
            self._read_no_more()
        connection = (_KEEP_ALIVE if item.http_1_0 else b"") if keep else _CLOSE
        try:
            head = response_head(response.status, response.headers, _framing(response, item), connection)
        except (TypeError, ValueError):
            log.exception("the answer to %s has a header field that cannot be sent", item.request)
            response = refuse(
                self._host.refusal, 500, "the server made an answer that cannot be sent; its log says why"
            )
            head = response_head(response.status, response.headers, _framing(response, item), connection)
        if item.request.method == "HEAD" or response.status in (204, 304):
            self._transport.write(head)
        elif response.producer is not None:
            await self._write_stream(item, head, response.producer)
        elif len(response.body) <= JOIN_LIMIT:
            self._transport.write(head + response.body)
        else:
            self._transport.write(head)
            self._transport.write(response.body)

    def _keeps(self, item: Incoming, response: Response) -> bool:
        """Whether another answer may follow this one. A connection that is to close still answers what it has read."""
        if not item.keep or (self._last and not self._reader.items):
            return False
        if item.http_1_0 and response.producer is not None:
            return False  # only the close ends such a body
        return response.headers.get("connection").lower() != "close"

    def _read_no_more(self) -> None:
        """This answer is the last: the client then knows that its later requests were not begun."""
        self._last = True
        self._cut_short = bool(self._reader.items) or self._read_paused
        self._reader.items.clear()
        self._reader.stop()

    async def _switch(self, item: Incoming, response: Response, upgrade: Upgrade) -> None:
        """Hand the connection over. It does not come back: the request for an upgrade was the last."""
        self._last = True
        self._transport.write(response_head(response.status, response.headers, b"", _UPGRADE))
        tunnel = self._tunnel = Tunnel(self._transport, paused=self._write_paused)
        rest, self._reader.rest = self._reader.rest, None
        if self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()
        if rest:
            tunnel.feed(rest)
        if self._half_closed:
            tunnel.end()
        try:
            await upgrade(tunnel)
        except ConnectionError:
            return  # the other side went away: its own business
        except Exception:  # the boundary between wire and user code, as for handlers
            log.exception("the upgraded connection of %s failed", item.request.target.partition("?")[0])
            self._transport.abort()

    async def _write_stream(self, item: Incoming, head: bytes, producer: Producer) -> None:
        self._transport.write(head)
        if self._half_closed:
            # The end of a stream must be noticed while it is written. The producer runs, and is cancelled when the
            # connection is lost in a moment: what its handler has opened is its to let go.
            self._close()
        sink = self._sink = ChunkSink(self._transport, chunked=not item.http_1_0, paused=self._write_paused)
        try:
            await producer(sink)
        except Exception:  # the boundary between wire and user code, as for handlers
            self._cut_off(sink, item)
        else:
            sink.finish()
        finally:
            sink.close()
            self._sink = None

    def _cut_off(self, sink: ChunkSink, item: Incoming) -> None:
        """A producer failed: end the stream so that its reader notices."""
        if sink.closed:
            return
        log.exception("the stream of %s %s failed", item.request.method, item.request.target.partition("?")[0])
        self._read_no_more()  # whatever followed would be taken for a part of it
        if item.http_1_0:
            self._transport.abort()  # a plain close would look like the regular end

    # --- refusing, closing, waiting -------------------------------------------------------------------------------

    def _refuse(self, item: Refused) -> None:
        if self._transport.is_closing():
            return
        response = refuse(self._host.refusal, item.status, item.text)
        framing = b"content-length: %d\r\n" % len(response.body)
        head = response_head(response.status, response.headers, framing, _CLOSE)
        self._transport.write(head + response.body)
        self._linger()

    def _linger(self) -> None:
        """Drop what still comes until the peer has seen the refusal: an immediate close could reset it away."""
        self._input_ignored = True
        if self._half_closed or self._transport.is_closing():
            self._transport.close()
            return
        if self._transport.can_write_eof():
            try:
                self._transport.write_eof()
            except OSError:  # the peer has reset the connection, and the loop has not reported it yet
                self._transport.abort()
                return
        if self._read_paused:
            self._transport.resume_reading()
        self._await_writing(self._host.limits.linger)

    def _close(self) -> None:
        self._input_ignored = True
        self._transport.close()
        self._await_writing(self._host.limits.write_time)

    async def _until_writable(self) -> None:
        self._writable = self._loop.create_future()
        self._await_writing(self._host.limits.write_time)
        try:
            await self._writable
        finally:
            self._writable = None

    def _await_writing(self, limit: float) -> None:
        self._unsent = unsent_bytes(self._transport)
        self._alarm.set(self._loop.time() + limit)

    def _set_alarm(self) -> None:
        limits, phase = self._host.limits, self._reader.phase
        self._timed = phase
        limit = limits.idle if phase == IDLE else limits.head_time if phase == HEAD else limits.body_time
        self._alarm.set(self._loop.time() + limit)

    def _on_alarm(self) -> None:
        if self._input_ignored or self._writable is not None:
            if unsent_bytes(self._transport) < self._unsent:
                self._await_writing(self._host.limits.write_time)  # slow, but it reads
            else:
                self._transport.abort()
        elif self._task is not None:
            return  # handlers take the time they need; the alarm is set again after them
        elif self._reader.phase == IDLE:
            self._close()
        else:
            self._reader.refuse(408, "the request took too long to arrive")
            self._proceed()


def _framing(response: Response, item: Incoming) -> bytes:
    if response.status in (204, 304):
        return b""
    if response.producer is not None:
        return b"" if item.http_1_0 else _CHUNKED
    if item.request.method == "HEAD" and (stated := response.headers.get("content-length")):
        return f"content-length: {stated}\r\n".encode("latin-1")
    return b"content-length: %d\r\n" % len(response.body)


def _peer(transport: asyncio.Transport) -> Peer:
    name = transport.get_extra_info("peername")
    address = f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else str(name or "")
    tls = transport.get_extra_info("ssl_object")
    return Peer(address, tls.getpeercert(True) if tls is not None else None)
