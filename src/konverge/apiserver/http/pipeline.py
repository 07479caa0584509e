"""The way of every request: read it, identify, authorize, route, answer; errors become Status answers here."""

from __future__ import annotations

import logging

from konverge.apiserver import nesting, status
from konverge.apiserver.http import respond
from konverge.apiserver.http.routing import PageNotFound, route
from konverge.apiserver.http.time_limit import within
from konverge.apiserver.request.call import Call
from konverge.apiserver.request.info import request_info, split_target
from konverge.apiserver.request.protocols import Backend
from konverge.apiserver.request.user import ANONYMOUS
from konverge.objects.durations import DurationError, parse_duration
from konverge.wire.message import Request, Response

log = logging.getLogger("konverge.apiserver")

_ASIDE = 16 * 1024
"""Parsing more YAML than this takes long enough for others to notice."""


async def handle(server: Backend, request: Request) -> Response:
    path, query = split_target(request.target)
    info = request_info(request.method, path, query)
    call = Call(server, request, info, query, ANONYMOUS)
    try:
        return await _answer(call)
    except status.ApiError as error:
        return respond.answer_error(call, error)
    except PageNotFound:
        return respond.answer_text(call, 404, "404 page not found\n")
    except TimeoutError:
        return respond.answer_error(call, _too_slow())
    except RecursionError:
        return respond.answer_error(call, status.bad_request(f"the object is nested too deeply: {nesting.TOO_DEEP}"))
    except Exception:  # the boundary: a fault of ours is a 500 with a line in the log, not a broken connection
        log.exception("%s %s failed", request.method, path)
        return respond.answer_error(call, status.internal("the server failed; its log says why"))


async def _answer(call: Call) -> Response:
    gate = call.server.gate
    call.user = gate.identify(call.request, call.info)
    gate.authorize(call.user, call.info)
    seconds = _time_limit(call)
    handler = route(call)
    before = call.server.extensions.before.get((call.info.group, call.info.plural))
    if before is not None:
        await before(call)
    if call.info.verb == "watch":
        return await handler(call)
    if len(call.request.body) > _ASIDE and "yaml" in call.request.headers.get("content-type"):
        from konverge.apiserver.http.yaml_thread import parsed_aside  # most servers never see YAML

        call.request.body = await parsed_aside(call.request.body)
    response = await within(seconds, handler(call))
    if len(response.body) > respond.GZIP_FROM:
        response = await respond.compressed(call, response)
    return response


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


def _too_slow() -> status.ApiError:
    message = "Timeout: request did not complete within the allotted timeout"
    return status.ApiError(504, "Timeout", message, {})
