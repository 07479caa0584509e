"""A transport that calls a handler in this process: no sockets, the same streaming, backpressure and cancellation.

A stream's producer runs in a task that belongs to the stream: it ends with the body, or is cancelled when the stream
is closed. The bytes between producer and reader are counted, so `drain` waits for a slow reader here as it does over
a socket.
"""

from __future__ import annotations

import asyncio

from konverge.wire.errors import ConnectionLost, TotalTimeout
from konverge.wire.handler import Refusal, answer, log, plain_refusal
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Handler, Producer, Request, Response
from konverge.wire.sink import Pausable
from konverge.wire.stream import ResponseStream

_FAIRNESS = 32
"""A handler that never waits would let its caller run forever; every so many exchanges the loop gets its turn."""


class Direct:
    """A `Transport` over a handler."""

    def __init__(
        self, handler: Handler, *, limits: ClientLimits | None = None, refusal: Refusal = plain_refusal
    ) -> None:
        self._handler = handler
        self._limits = limits or ClientLimits()
        self._refusal = refusal
        self._exchanges = 0
        self._feeds: set[_Feed] = set()

    async def send(self, request: Request) -> Response:
        timeout = request.timeout if request.timeout is not None else self._limits.total
        if timeout is None:
            return await self._whole(request)
        try:
            async with asyncio.timeout(timeout):
                return await self._whole(request)
        except TimeoutError as error:
            raise _late() from error

    async def stream(self, request: Request) -> ResponseStream:
        """See `Transport`. A request's timeout covers the whole stream."""
        loop = asyncio.get_running_loop()
        deadline = None if request.timeout is None else loop.time() + request.timeout
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._answer(request)
        except TimeoutError as error:
            raise _late() from error
        return self._open(request, response, deadline)

    async def upgrade(self, request: Request) -> Response:
        """Ask for an upgrade. After a 101 the answer's `upgrade` is what follows."""
        return await self.send(request)

    async def aclose(self) -> None:
        """End the streams that are still open."""
        for feed in list(self._feeds):
            await feed.stop()

    async def _answer(self, request: Request) -> Response:
        self._exchanges += 1
        if self._exchanges % _FAIRNESS == 0:
            await asyncio.sleep(0)
        return await answer(self._handler, request, self._refusal)

    async def _whole(self, request: Request) -> Response:
        response = await self._answer(request)
        if response.producer is None and request.method != "HEAD":
            return response
        stream = self._open(request, response, None)
        try:
            return Response(response.status, response.headers, await stream.read())
        finally:
            await stream.aclose()

    def _open(self, request: Request, response: Response, deadline: float | None) -> ResponseStream:
        feed = _Feed(self._feeds)
        stream = ResponseStream(
            feed,
            response.status,
            response.headers,
            high=self._limits.stream_buffer,
            gzip=False,
            body_limit=self._limits.body,
        )
        if response.producer is not None and request.method != "HEAD":
            feed.begin(stream, response.producer, request, deadline)
            return stream
        if response.body and request.method != "HEAD":
            stream.push(response.body)
        stream.end()
        return stream


class _Feed(Pausable):
    """Between a producer and a stream: the producer's `Sink`, the stream's `Source`, and the task that links them."""

    def __init__(self, feeds: set[_Feed]) -> None:
        super().__init__(paused=False)
        self._feeds = feeds
        self._stream: ResponseStream | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, stream: ResponseStream, producer: Producer, request: Request, deadline: float | None) -> None:
        self._stream = stream
        self._feeds.add(self)
        self._task = asyncio.create_task(self._run(producer, request, deadline), name="konverge.wire.in_process")

    async def _run(self, producer: Producer, request: Request, deadline: float | None) -> None:
        failure: Exception = ConnectionLost("the stream was cut off by its server; read before trying again")
        try:
            async with asyncio.timeout_at(deadline) as limit:
                await producer(self)
            if self._stream is not None:
                self._stream.end()
        except Exception:  # the boundary between wire and user code
            if limit.expired():
                failure = _late()
            elif not self.closed:
                log.exception("the stream of %s %s failed", request.method, request.target.partition("?")[0])
        finally:
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.fail(failure)  # does nothing when it has ended well
            self._wake()
            self._feeds.discard(self)

    async def stop(self) -> None:
        """Cancel the producer and wait for its end."""
        task = self._task
        if task is None or task.done() or task is asyncio.current_task():
            return
        task.cancel()
        await asyncio.wait([task])

    # --- Sink, for the producer -----------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._stream is not None and data:
            self._stream.push(data)

    async def drain(self) -> None:
        if self._paused and not self.closed:
            await self._resumed()
        if self.closed:
            raise ConnectionResetError("the reader of this stream has gone; stop writing")

    @property
    def buffered(self) -> int:
        return self._stream.buffered if self._stream is not None else 0

    @property
    def closed(self) -> bool:
        return self._stream is None

    # --- Source, for the stream (with `pause` and `resume`) -------------------------------------------------------

    def reader_waits(self) -> None:
        """Silence is not measured in process."""

    async def discard(self, stream: ResponseStream) -> None:
        self._stream = None
        self._wake()
        await self.stop()


def _late() -> TotalTimeout:
    return TotalTimeout("the answer did not come in time; allow more time or ask for less")
