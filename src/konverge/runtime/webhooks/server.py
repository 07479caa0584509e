"""The HTTP side of webhooks: one POST is one review.

Whatever a webhook does, the server goes on: an exception is a 500 whose text says nothing of the code (the log has the
traceback), and a review that takes longer than the API server waits is given up. The body is limited, and so is the
number of reviews at work.

Upstream: controller-runtime's pkg/webhook/admission/http.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from konverge.objects.durations import DurationError, duration_seconds
from konverge.runtime.webhooks.begun import Begun
from konverge.runtime.webhooks.registry import BadReview, Webhook, Webhooks
from konverge.wire.limits import ServerLimits
from konverge.wire.message import Headers, Request, Response

_log = logging.getLogger("konverge.webhooks")

LONGEST = 30.0
"""Seconds: no caller waits longer (upstream: timeoutSeconds is at most 30)."""
CONVERSION_BODY = 32 * 1024 * 1024
"""Bytes of a review where conversions are served: 6,000 objects of 5 KB. Callers are not known, and a body is in memory
as a whole: what a few of them can send must not end the process."""
CONNECTIONS, CONVERSION_CONNECTIONS = 1000, 100
"""At once; fewer where bodies may be large."""
_JSON = "application/json"
_JSON_HEADERS = Headers.of({"Content-Type": _JSON})


class Reviews:
    """The handler of a webhook server."""

    def __init__(self, webhooks: Webhooks) -> None:
        self._routes = webhooks.routes
        self._room = asyncio.Semaphore(webhooks.max_in_flight)
        self.answered: dict[tuple[str, int], int] = {}
        """(path, HTTP status) -> how many."""
        self.in_flight = 0

    def metrics(self) -> Iterator[Any]:
        """For Prometheus. Upstream: controller_runtime_webhook_requests_total, …_in_flight."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # loaded at the first scrape

        answered = CounterMetricFamily(
            "konverge_webhook_requests", "Reviews, by path and HTTP status", labels=["webhook", "code"]
        )
        for (path, status), count in self.answered.items():
            answered.add_metric([path, str(status)], count)
        yield answered
        yield GaugeMetricFamily("konverge_webhook_requests_in_flight", "Reviews at work", value=self.in_flight)

    async def handle(self, request: Request) -> Response:
        path, _, query = request.target.partition("?")
        webhook = self._routes.get(path)
        if webhook is None:
            return _text(404, "404 page not found")
        response = _refusal(request) or await self._review(webhook, request.body, _seconds(query))
        key = (path, response.status)
        self.answered[key] = self.answered.get(key, 0) + 1
        return response

    async def _review(self, webhook: Webhook, body: bytes, seconds: float) -> Response:
        self.in_flight += 1
        limit: asyncio.Timeout | None = None
        try:
            first = None if webhook.waits else Begun(webhook.answer(body))
            if first is not None and first.done:
                return Response(200, _JSON_HEADERS, first.result)
            async with asyncio.timeout(seconds) as limit, self._room:
                return Response(200, _JSON_HEADERS, await (first or webhook.answer(body)))
        except BadReview as error:
            return _text(400, str(error))
        except Exception as error:
            if isinstance(error, TimeoutError) and limit is not None and limit.expired():
                _log.warning("the webhook %s did not answer within %g s", webhook.path, seconds)
                return _text(504, f"the webhook did not answer within {seconds:g} s")
            _log.exception("the webhook %s failed", webhook.path)
            return _text(500, "the webhook failed; the log of the operator says why")
        finally:
            self.in_flight -= 1


def server_limits(webhooks: Webhooks) -> ServerLimits:
    """A conversion gets a whole list of the API server in one review, which has no limit of its own."""
    if not webhooks.definitions:
        return ServerLimits(body=webhooks.max_body, connections=CONNECTIONS)
    return ServerLimits(body=max(CONVERSION_BODY, webhooks.max_body), connections=CONVERSION_CONNECTIONS)


def _refusal(request: Request) -> Response | None:
    if request.method != "POST":
        return _text(405, "a review is sent by POST")
    if _content_type(request.headers) != _JSON.encode():
        return _text(415, f"a review is sent as {_JSON}")
    if not request.body:
        return _text(400, "the request has no body")
    return None


def _content_type(headers: Headers) -> bytes:
    """Without its parameters. Looked for once, so that no index of the fields is worth its cost."""
    for name, value in headers.raw:
        if name.lower() == b"content-type":
            return value.partition(b";")[0].strip()
    return b""


@lru_cache(maxsize=64)
def _seconds(query: str) -> float:
    """How long the caller waits, as it says itself (`timeout=10s`)."""
    given = parse_qs(query).get("timeout", [""])[0] if query else ""
    try:
        seconds = duration_seconds(given)
    except DurationError:
        return LONGEST
    return min(seconds, LONGEST) if seconds > 0 else LONGEST


def _text(status: int, text: str) -> Response:
    return Response(status, Headers.of({"Content-Type": "text/plain; charset=utf-8"}), f"{text}\n".encode())
