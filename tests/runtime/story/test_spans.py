"""OpenTelemetry spans of reconciles, as the SDK's exporter gets them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.client.call import Call, Caller
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Result
from konverge.runtime.config import ConfigurationError, load_configuration
from konverge.wire.message import Response, Stream
from tests.runtime.objects import SPACE, config_map

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-91")]

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed (make venv)")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


class Listening:
    """Passes requests on, and keeps their headers."""

    def __init__(self, inner: Caller) -> None:
        self._inner = inner
        self.headers: list[dict[str, str]] = []

    @property
    def near(self) -> bool:
        return self._inner.near

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)

    async def call(self, call: Call) -> Response:
        if call.writes and call.resource == Secret.resource:
            self.headers.append(dict(call.headers))
        return await self._inner.call(call)


class ListeningClient(Client):
    def __init__(self, inner: Client) -> None:
        self.listening = Listening(inner.caller)
        self._use_caller(self.listening, inner.mapper)
        self.server = inner.server


async def spans_of(client: Client, reconcile: Any) -> dict[str, Any]:
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    await client.create(config_map("a", color="red"))
    declared = Manager(tracing=provider).add(Controller(ConfigMap, reconcile, name="maps", namespaces=(SPACE,)))
    async with declared.bound_to(client).running():
        await asyncio.sleep(1)
    return {span.name: span for span in exporter.get_finished_spans()}


async def test_a_span_for_the_reconcile_and_one_below_it_for_each_request(server: ApiServer, client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> Result:
        await ctx.client.create(Secret(metadata=ObjectMeta(name="made", namespace=SPACE)))
        return Result(requeue_after=300)

    listening = ListeningClient(client)
    spans = await spans_of(listening, reconcile)
    outer, inner = spans["reconcile ConfigMap"], spans["POST Secret"]
    assert inner.parent.span_id == outer.context.span_id
    assert inner.context.trace_id == outer.context.trace_id
    assert inner.attributes["http.response.status_code"] == 201
    made = await client.get(ConfigMap, "a", SPACE)
    assert dict(inner.attributes) == {
        "http.request.method": "POST",
        "http.response.status_code": 201,
        "k8s.namespace.name": SPACE,
        "k8s.object.kind": "Secret",
        "k8s.verb": "create",
    }
    attributes = dict(outer.attributes)
    assert 0 <= attributes.pop("konverge.queue_wait") < 1
    assert attributes == {
        "konverge.controller": "maps",
        "konverge.number": 1,
        "konverge.reasons": ("ConfigMap default/a listed",),
        "konverge.requeue_after": 300,
        "k8s.namespace.name": SPACE,
        "k8s.object.api_version": "v1",
        "k8s.object.generation": made.metadata.generation,
        "k8s.object.kind": "ConfigMap",
        "k8s.object.name": "a",
        "k8s.object.uid": made.metadata.uid,
    }
    assert (inner.kind.name, outer.instrumentation_scope.name) == ("CLIENT", "konverge")
    (headers,) = listening.listening.headers
    assert f"{inner.context.span_id:016x}" in headers["traceparent"]  # the API server continues this trace


async def test_headers_of_others_stay_and_an_older_trace_is_replaced(client: Client) -> None:
    sent: list[tuple[tuple[str, str], ...]] = []

    class Sending:
        near = True

        async def call(self, call: Call) -> Response:
            sent.append(tuple(call.headers))
            return Response(200)

    from konverge.runtime.story.spans import Spans

    inner = Client.__new__(Client)
    inner._use_caller(Sending(), client.mapper)  # type: ignore[arg-type]
    provider = sdk.TracerProvider()
    traced = Spans(provider).client(inner)
    headers = (("x-other", "1"), ("traceparent", "old"))
    with provider.get_tracer("test").start_as_current_span("outer"):
        await traced.caller.call(Call("create", Secret.resource, SPACE, headers=headers))
    ((other, (name, value)),) = sent
    assert (other, name) == (("x-other", "1"), "traceparent")
    assert value != "old"


async def test_a_failure_is_on_the_span_and_still_the_engine_s(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        await ctx.client.get(Secret, "absent", SPACE)

    spans = await spans_of(client, reconcile)
    assert spans["reconcile ConfigMap"].status.status_code.name == "ERROR"
    assert spans["GET Secret"].status.status_code.name == "ERROR"


async def test_requests_outside_of_a_span_have_none(client: Client) -> None:
    from konverge.runtime.story.spans import Spans

    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    traced = Spans(provider).client(client)
    await traced.create(config_map("b"))
    assert exporter.get_finished_spans() == ()
    with provider.get_tracer("test").start_as_current_span("outer"):
        await traced.caller.call(Call("get", None, path="/version"))
        await traced.patch(ConfigMap, "b", MergePatch({"data": {"x": "1"}}), SPACE)
    version, patch, _ = exporter.get_finished_spans()
    assert (version.name, patch.name) == ("GET /version", "PATCH ConfigMap")
    assert (patch.attributes["k8s.object.name"], patch.attributes["k8s.verb"]) == ("b", "patch")
    assert "k8s.subresource" not in patch.attributes
    exporter.clear()
    await client.create(Namespace(metadata=ObjectMeta(name="there")))
    with provider.get_tracer("test").start_as_current_span("outer"):
        body = {"metadata": {"name": "there"}, "spec": {"finalizers": ["kubernetes"]}}
        await traced.update(body, resource=Namespace.resource, subresource="finalize")
    assert exporter.get_finished_spans()[0].attributes["k8s.subresource"] == "finalize"
    assert (traced.caller.near, traced.server) == (client.caller.near, client.server)


async def test_a_watch_is_passed_on_as_it_is(client: Client) -> None:
    from konverge.runtime.story.spans import Spans

    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    traced = Spans(provider).client(client)
    await client.create(config_map("a"))
    query = {"watch": "true", "fieldSelector": "metadata.name=a"}
    with provider.get_tracer("test").start_as_current_span("outer"):
        stream = await traced.caller.stream(Call("watch", ConfigMap.resource, SPACE, query=query))
        first = await anext(aiter(stream))
        await stream.aclose()
    assert (stream.status, b'"name":"a"' in first) == (200, True)
    assert [span.name for span in exporter.get_finished_spans()] == ["outer"], "it would last for minutes"


def test_without_tracing_nothing_of_it_is_imported() -> None:
    code = "import sys, konverge.runtime.lifecycle; print([m for m in sys.modules if 'opentelemetry' in m])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout == b"[]\n"


async def test_a_missing_extra_is_one_line(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "konverge.runtime.story.spans", None)
    config = load_configuration(environment={"KONVERGE_TRACING": "true"})
    manager = Manager(client, config=config).add(Controller(ConfigMap, _nothing))
    with pytest.raises(ConfigurationError, match=r"konverge\[otel\]"):
        async with manager.running():
            pass


async def _nothing(ctx: Context[ConfigMap]) -> None: ...
