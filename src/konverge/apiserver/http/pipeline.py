"""What happens to every request: identify, authorize, route, answer. Errors become Status answers here.

The time limit costs nothing until a request waits. Nearly every request is answered without waiting for anything, and
for those a timer of the loop would be a good part of the work. So a request begins without one and gets it when it
waits for the first time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from konverge.apiserver import aside, nesting, status
from konverge.apiserver.flow_control.control import WIDEST, Flow, TooMany
from konverge.apiserver.http import respond
from konverge.apiserver.http.bodies import BODY_LIMIT, yaml_parsed_in_thread
from konverge.apiserver.http.routing import PageNotFound, route
from konverge.apiserver.request.call import Call
from konverge.apiserver.request.info import request_info, split_target
from konverge.apiserver.request.protocols import Backend, Handler, Hook
from konverge.apiserver.request.user import ANONYMOUS
from konverge.apiserver.storage.failures import Failed, InDoubt, Lost
from konverge.objects.durations import DurationError, parse_duration
from konverge.wire.message import Headers, Request, Response

log = logging.getLogger("konverge.apiserver")

_RETRY_AFTER = 2
"""Seconds after which a write is worth another try when the disk failed. Upstream: InterpretCreateError."""
_READS = frozenset({"get", "list", "watch"})
_YAML_IN_THREAD = 16 * 1024
"""Bytes of YAML from which a thread parses it: 16 KiB take some 10 ms, for which others would wait."""


async def handle(server: Backend, request: Request) -> Response:
    path, query = split_target(request.target)
    info = request_info(request.method, path, query)
    if (counts := server.extensions.counts) is not None:
        counts.note(info.verb, request)
    call = Call(server, request, info, query, ANONYMOUS)
    try:
        return await _answer(call)
    except status.ApiError as error:
        return respond.answer_error(call, error)
    except PageNotFound:
        return respond.answer_text(call, 404, "404 page not found\n")
    except TimeoutError:
        return _timed_out(call)
    except TooMany as error:
        return respond.too_many(call, error.seconds)
    except RecursionError:
        return respond.answer_error(call, status.bad_request(f"the object is nested too deeply: {nesting.TOO_DEEP}"))
    except Failed as error:  # logged when it happened; a reader of the log needs no traceback of every write
        return respond.answer_error(call, _not_stored(error))
    except Exception:  # the boundary: an error of ours is a 500 with a line in the log, not a broken connection
        log.exception("%s %s failed", request.method, path)
        return respond.answer_error(call, status.internal("the server failed; its log says why"))


async def _answer(call: Call) -> Response:
    server, info = call.server, call.info
    call.user = server.gate.identify(call.request, info)
    flow, leave = server.flows.flow(call.user, info), None
    if flow is not None:
        call.flow_headers = flow.headers
        if flow.is_limited:
            leave = await _turn(call, flow) if flow.level.free < WIDEST else None
        flow.schema.dispatched += 1
    try:
        server.gate.authorize(call.user, info)
        seconds = _time_limit(call)
        handler = route(call)
        before = server.extensions.before.get((info.group, info.plural))
        if before is not None:
            handler = partial(_after_hook, before, handler)
        unseated = flow if leave is None else None
        if info.verb == "watch":
            return await within(None, handler(call), call, unseated)
        if len(call.request.body) < _YAML_IN_THREAD:
            response = await within(seconds, _work(call, handler), call, unseated)
        else:
            response = await _large(call, seconds, handler, unseated)
    finally:
        if leave is not None:
            leave()
    if len(response.body) > respond.GZIP_FROM:
        response = await respond.compressed(call, response)
    return response


async def _turn(call: Call, flow: Flow) -> Callable[[], None] | None:
    """Wait for seats if there are too few; the result gives them back. Raises TooMany."""
    flows = call.server.flows
    if flow.level.free >= flows.seats(flow, call.info):
        return None
    seconds = call.server.config.request_timeout if call.info.verb == "watch" else _time_limit(call)
    return await flows.turn(flow, call.info, seconds / 4)  # upstream: GetQueueWaitContext


async def _large(call: Call, seconds: float, handler: Handler, unseated: Flow | None) -> Response:
    is_yaml = "yaml" in call.request.headers.get("content-type")
    work = _from_yaml(call, handler) if is_yaml else _work(call, handler)
    if len(call.request.body) < aside.FROM:
        return await within(seconds, work, call, unseated)
    with aside.collector_paused:
        return await within(seconds, work, call, unseated)


async def _after_hook(hook: Hook, handler: Handler, call: Call) -> Response:
    await hook(call)
    return await handler(call)


def _work(call: Call, handler: Handler) -> Awaitable[Response]:
    return handler(call) if call.info.verb in _READS else _write(call, handler)


async def _from_yaml(call: Call, handler: Handler) -> Response:
    call.request.body = await yaml_parsed_in_thread(call.request.body)
    return await _work(call, handler)


async def _write(call: Call, handler: Handler) -> Response:
    """A refusal and a dry run may rest on writes that are not on disk: no client hears of these before they are."""
    try:
        response = await handler(call)
    except (status.ApiError, PageNotFound):
        await call.server.store.present_settled(call.reverts)
        raise
    if call.dry_run:
        await call.server.store.present_settled(call.reverts)
    after = call.server.extensions.after.get((call.info.group, call.info.plural))
    if after is not None:
        await after(call)
    return response


def _not_stored(error: Failed) -> status.ApiError:
    """Clients send a write again by themselves if there is a time to do so, which is right where nothing is stored."""
    if isinstance(error, Lost):
        return status.internal(f"the state cannot be written any more: {error}")
    if isinstance(error, InDoubt):
        message = f"Timeout: whether the request is stored is not known: {error}"
        return status.ApiError(504, "Timeout", message, {})
    return status.unavailable(f"the request is not stored: {error}", _RETRY_AFTER)


def _time_limit(call: Call) -> float:
    """Seconds that the request may take; 400 for a time that cannot be read."""
    limit = call.server.config.request_timeout
    asked = call.query.get("timeout")
    if not asked or not asked[0]:
        return limit
    try:
        seconds = parse_duration(asked[0]) / 1e9
    except DurationError as error:
        raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, limit) if seconds > 0 else limit


def _timed_out(call: Call) -> Response:  # upstream: timeoutWriter.timeout (apiserver/pkg/server/filters/timeout.go)
    """A Status without a kind, called a text: the real server ends the request outside of what knows such things."""
    error = status.ApiError(504, "Timeout", "Timeout: request did not complete within the allotted timeout", {})
    body = {name: value for name, value in error.status().items() if name not in ("kind", "apiVersion")}
    return respond.answer_text(call, error.code, msgspec.json.encode(body).decode() + "\n")


# --- the time limit

T = TypeVar("T")


async def within(seconds: float | None, work: Awaitable[T], call: Call | None = None, flow: Flow | None = None) -> T:
    """Await the work; TimeoutError when it waits for longer than so many seconds.

    With a flow, the request takes its seats when it waits for the first time, and gives them back when it has ended.
    """
    steps = work.__await__()
    try:
        waiting = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    leave = call.server.flows.occupy(flow, call.info) if call and flow and flow.is_limited else None
    try:
        async with asyncio.timeout(seconds):
            return await _Started(steps, waiting)
    finally:
        if leave is not None:
            leave()


class _Started(Generic[T]):
    """The rest of a coroutine that already waits for something."""

    def __init__(self, steps: Generator[Any, Any, T], waiting: Any) -> None:
        self._steps = steps
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, T]:
        steps, waiting = self._steps, self._waiting
        try:
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:  # whatever is thrown into the task belongs to the work
                    waiting = steps.throw(error)
                else:
                    waiting = steps.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result


# --- what the wire refuses

_REASONS = {413: "RequestEntityTooLarge", 500: "InternalError", 503: "ServiceUnavailable"}
_TEXTS = {400: "400 Bad Request", 414: "414 URI Too Long", 431: "431 Request Header Fields Too Large"}


def refusal(code: int, text: str) -> Response:
    """The answer to a request that the wire itself refuses: a Status, or a line of text for what is not HTTP."""
    if code == 400 and "method" in text:  # the parser knows the methods of HTTP only, and resources allow no others
        return _status(status.method_not_allowed())
    if code == 413:
        return _status(status.too_large(BODY_LIMIT))
    if code in _REASONS:
        return _status(status.ApiError(code, _REASONS[code], text))
    body = f"{_TEXTS.get(code, text)}: {text}" if code in _TEXTS else text
    return Response(code, Headers([(b"content-type", b"text/plain; charset=utf-8")]), body.encode())


def _status(error: status.ApiError) -> Response:
    headers = Headers([(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")])
    return Response(error.code, headers, msgspec.json.encode(error.status()) + b"\n")
