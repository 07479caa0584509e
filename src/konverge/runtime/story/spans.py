"""OpenTelemetry: a span for each reconcile, and one below it for each request that it makes to the API server.

Needs the extra `konverge[otel]`; nothing of it is imported unless tracing is asked for (`Manager(tracing=True)`, or
KONVERGE_TRACING). The reconcile's span is the current one while it runs, so spans of the author's own code and of other
instrumentation are below it; its context travels to the API server with each request (`traceparent`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import propagate, trace

from konverge.client import Client
from konverge.client.call import METHODS, Call, Caller
from konverge.runtime.context import Context
from konverge.runtime.declare import Controller
from konverge.runtime.result import Result
from konverge.wire.message import Response, Stream

MAX_REASONS = 8
"""Reasons that a span names."""

Reconcile = Callable[[Context[Any]], Awaitable[Result | None]]


class Spans:
    """Makes spans with a provider; without one, with that of the process."""

    def __init__(self, provider: Any = None) -> None:
        self._tracer = trace.get_tracer("konverge", tracer_provider=provider)

    def around(self, controller: Controller[Any], reconcile: Reconcile) -> Reconcile:
        """The same reconcile in a span of its own."""
        resource = controller.kind.resource
        name = f"reconcile {resource.kind}"
        fixed = {
            "konverge.controller": controller.name,
            "k8s.object.kind": resource.kind,
            "k8s.object.api_version": resource.api_version,
        }

        async def traced(ctx: Context[Any]) -> Result | None:
            with self._tracer.start_as_current_span(name, attributes=fixed) as span:
                if span.is_recording():
                    span.set_attributes(_of(ctx))
                result = await reconcile(ctx)
                if result is not None:
                    span.set_attribute("konverge.requeue_after", result.requeue_after)
                return result

        return traced

    def client(self, inner: Client) -> Client:
        """The same client; each request that is made inside a span has one of its own."""
        return _Traced(inner, self._tracer)


def _of(ctx: Context[Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {"konverge.reasons": [str(reason) for reason in ctx.reasons[:MAX_REASONS]]}
    obj = getattr(ctx, "obj", None)
    if obj is None:  # a request that is not an object
        attributes["konverge.request"] = str(ctx.request)
    else:
        attributes |= {
            "k8s.namespace.name": obj.metadata.namespace,
            "k8s.object.name": obj.metadata.name,
            "k8s.object.uid": obj.metadata.uid,
            "k8s.object.generation": obj.metadata.generation,
        }
    if ctx.entry is not None:
        attributes |= {"konverge.queue_wait": ctx.entry.waited, "konverge.number": ctx.entry.number}
    return attributes


class _Traced(Client):
    def __init__(self, inner: Client, tracer: trace.Tracer) -> None:
        self._use_caller(_TracedCalls(inner.caller, tracer), inner.mapper)
        self.server = inner.server


class _TracedCalls:
    def __init__(self, inner: Caller, tracer: trace.Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    @property
    def near(self) -> bool:
        return self._inner.near

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)

    async def call(self, call: Call) -> Response:
        if not trace.get_current_span().is_recording():
            return await self._inner.call(call)
        method = METHODS[call.verb]
        what = call.resource.kind if call.resource is not None else call.path
        attributes = {
            "http.request.method": method,
            "k8s.namespace.name": call.namespace,
            "k8s.object.kind": what,
            "k8s.object.name": call.name,
            "k8s.verb": call.verb,
            "k8s.subresource": call.subresource,
        }
        attributes = {name: value for name, value in attributes.items() if value}
        with self._tracer.start_as_current_span(
            f"{method} {what}", kind=trace.SpanKind.CLIENT, attributes=attributes
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            call.headers = (*((name, value) for name, value in call.headers if name not in carrier), *carrier.items())
            response = await self._inner.call(call)
            span.set_attribute("http.response.status_code", response.status)
            return response
