"""What each verb puts on the wire: method, path, query, media type and body."""

from __future__ import annotations

import gc
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import (
    Client,
    DryRun,
    FieldOwner,
    JsonPatch,
    MalformedAnswer,
    MergePatch,
    Namespaced,
    Recording,
    StrategicPatch,
    merge_between,
)
from konverge.client.call import Call
from konverge.client.warnings import LogOnce, ServerWarning
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource
from konverge.wire import Response, Sink
from tests.client.scripted import Script, config_map, ok, streamed

MAPS = Resource("", "v1", "ConfigMap", "configmaps")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
HERE = "/api/v1/namespaces/shop"
PATCH = MergePatch({"data": {"k": "v"}})
SCALE = {"spec": {"replicas": 3}}
JSON = "application/json"
MERGE = "application/merge-patch+json"


def new(name: str = "a") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="shop"))


Do = Callable[[Client], Awaitable[Any]]


@pytest.mark.parametrize(
    ("do", "line", "media_type", "body"),
    [
        (lambda c: c.create(config_map(), resource=MAPS), f"POST {HERE}/configmaps", JSON, config_map()),
        (lambda c: c.update(config_map(), resource=MAPS), f"PUT {HERE}/configmaps/a", JSON, config_map()),
        (
            lambda c: c.update(config_map(), resource=MAPS, subresource="status", dry_run=True),
            f"PUT {HERE}/configmaps/a/status?dryRun=All",
            JSON,
            config_map(),
        ),
        (lambda c: c.patch(MAPS, "a", PATCH, "shop"), f"PATCH {HERE}/configmaps/a", MERGE, {"data": {"k": "v"}}),
        (
            lambda c: c.send_patch(MAPS, "a", PATCH, "shop", subresource="status"),
            f"PATCH {HERE}/configmaps/a/status",
            MERGE,
            {"data": {"k": "v"}},
        ),
        (
            lambda c: c.patch(MAPS, "a", JsonPatch([{"op": "remove", "path": "/x"}]), "shop"),
            f"PATCH {HERE}/configmaps/a",
            "application/json-patch+json",
            [{"op": "remove", "path": "/x"}],
        ),
        (
            lambda c: c.patch(MAPS, "a", StrategicPatch({"a": 1}), "shop"),
            f"PATCH {HERE}/configmaps/a",
            "application/strategic-merge-patch+json",
            {"a": 1},
        ),
        (
            lambda c: c.apply(config_map(), resource=MAPS, field_manager="me", subresource="status"),
            f"PATCH {HERE}/configmaps/a/status?fieldManager=me",
            "application/apply-patch+yaml",
            config_map(),
        ),
        (
            lambda c: c.scale(DEPLOYMENTS, "web", 3, "shop", dry_run=True),
            "PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?dryRun=All",
            MERGE,
            SCALE,
        ),
        (
            lambda c: c.update_sub(DEPLOYMENTS, "web", "scale", SCALE, "shop"),
            "PUT /apis/apps/v1/namespaces/shop/deployments/web/scale",
            JSON,
            SCALE,
        ),
        (
            lambda c: c.evict("p", "shop", grace_period=5),
            f"POST {HERE}/pods/p/eviction",
            JSON,
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "p", "namespace": "shop"},
                "deleteOptions": {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5},
            },
        ),
        (
            lambda c: c.bind_pod("p", "node-1", "shop"),
            f"POST {HERE}/pods/p/binding",
            JSON,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            },
        ),
        (
            lambda c: c.delete_collection(MAPS, "shop", label_selector="a=b", propagation="Foreground"),
            f"DELETE {HERE}/configmaps?labelSelector=a%3Db",
            JSON,
            {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
        ),
    ],
)
async def test_a_write(do: Do, line: str, media_type: str, body: Any) -> None:
    server = Script(ok({**config_map(), "items": []}))
    await do(server.client())
    (request,) = server.requests
    assert (server.lines, request.headers.get("content-type")) == ([line], media_type)
    assert json.loads(request.body) == body


@pytest.mark.parametrize(
    ("do", "line", "accept"),
    [
        (lambda c: c.get(MAPS, "a", "shop"), f"GET {HERE}/configmaps/a", JSON),
        (
            lambda c: c.list(MAPS, "shop", label_selector="a=b", field_selector="", limit=5),
            f"GET {HERE}/configmaps?labelSelector=a%3Db&limit=5",
            JSON,
        ),
        (lambda c: c.list(MAPS), "GET /api/v1/configmaps", JSON),
        (lambda c: c.get(MAPS, "a", "shop", resource_version=None), f"GET {HERE}/configmaps/a", JSON),
        (lambda c: c.get_sub(MAPS, "a", "scale", "shop"), f"GET {HERE}/configmaps/a/scale", JSON),
        (
            lambda c: c.log("p", "shop", container="main", previous=True, timestamps=False, tail_lines=7),
            f"GET {HERE}/pods/p/log?container=main&previous=true&tailLines=7",
            "*/*",
        ),
    ],
)
async def test_a_read_has_no_body(do: Do, line: str, accept: str) -> None:
    server = Script(ok({**config_map(), "items": []}))
    await do(server.client())
    (request,) = server.requests
    assert (server.lines, request.headers.get("accept")) == ([line], accept)
    assert (request.body, request.headers.get_all("content-type")) == (b"", [])


async def test_a_token_request() -> None:
    issued = {"status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    server = Script(ok(issued))
    client = server.client()
    token = await client.request_token("builder", "shop", audiences=("a", "b"), seconds=600)
    assert (token.token, token.expires) == ("t", "2026-01-01T00:00:00Z")
    assert server.lines == [f"POST {HERE}/serviceaccounts/builder/token"]
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    assert json.loads(server.requests[0].body) == {**head, "spec": {"expirationSeconds": 600, "audiences": ["a", "b"]}}
    await client.request_token("builder", "shop")
    assert json.loads(server.requests[1].body) == {**head, "spec": {"expirationSeconds": 3600}}


async def test_a_stream_is_closed_when_its_reader_stops() -> None:
    closed: list[str] = []

    async def endless(sink: Sink) -> None:
        try:
            while True:
                sink.write(b"line\n")
                await sink.drain()
        finally:
            closed.append("log")

    lines = Script(Response(200, producer=endless)).client().log_lines("p", "shop")
    assert await anext(lines) == "line"
    await lines.aclose()
    assert closed == ["log"]


async def test_the_lines_of_a_log_however_they_are_cut() -> None:
    server = Script(streamed(b"one\ntw", b"o\n\nthr", b"ee"))
    lines = [line async for line in server.client().log_lines("p", "shop", follow=False, since_seconds=9)]
    assert lines == ["one", "two", "", "three"]
    assert server.lines == [f"GET {HERE}/pods/p/log?sinceSeconds=9"]


# ------------------------------------------------------------------ patches


def test_a_patch_between_two_objects_locks_only_when_asked_and_when_something_changed() -> None:
    before = {"metadata": {"resourceVersion": "7", "labels": {"a": "1", "b": "2"}}, "n": 1, "gone": None}
    after = {"metadata": {"resourceVersion": "7", "labels": {"a": "2"}}, "n": True}
    changes = {"metadata": {"labels": {"a": "2", "b": None}}, "n": True, "gone": None}
    assert merge_between(before, after).body == changes
    locked = {**changes, "metadata": {**changes["metadata"], "resourceVersion": "7"}}  # type: ignore[dict-item]
    assert merge_between(before, after, lock=True).body == locked
    assert merge_between(before, {**before, "n": 2}, lock=True).body == {"n": 2, "metadata": {"resourceVersion": "7"}}
    nothing = merge_between(before, before, lock=True)
    assert (nothing.body, bool(nothing), bool(merge_between(before, after))) == ({}, False, True)


# ------------------------------------------------------------------ wrappers


async def test_a_namespaced_client_reaches_its_namespace_only() -> None:
    server = Script(ok(config_map()))
    shop = Namespaced(server.client(), "shop")
    await shop.get(ConfigMap, "a")
    await shop.get(Namespace, "bank")
    await shop.caller.call(Call("get", None, path="/version"))
    with pytest.raises(ValueError, match="'bank'"):
        await shop.get(ConfigMap, "a", "bank")
    with pytest.raises(ValueError, match="needs the name"):
        Namespaced(server.client(), "")
    assert server.lines == [f"GET {HERE}/configmaps/a", "GET /api/v1/namespaces/bank", "GET /version"]


async def test_a_dry_run_reads_as_usual_and_an_owner_does_not_replace_another() -> None:
    server = Script(ok(config_map()))
    client = FieldOwner(DryRun(server.client()), "me")
    await client.get(ConfigMap, "a", "shop")
    await client.create(new())
    await client.apply(new(), field_manager="you")
    await client.delete(ConfigMap, "a", "shop")
    assert server.lines == [
        f"GET {HERE}/configmaps/a",
        f"POST {HERE}/configmaps?fieldManager=me&dryRun=All",
        f"PATCH {HERE}/configmaps/a?fieldManager=you&dryRun=All",
        f"DELETE {HERE}/configmaps/a?dryRun=All",
    ]


async def test_a_recording_has_every_call_and_knows_the_writes() -> None:
    recording = Recording(Script(ok(config_map())).client())
    await recording.get(ConfigMap, "a", "shop")
    await recording.patch(ConfigMap, "a", PATCH, "shop")
    await recording.delete(ConfigMap, "a", "shop")
    assert [call.verb for call in recording.calls] == ["get", "patch", "delete"]
    assert [call.verb for call in recording.writes] == ["patch", "delete"]


class _Closable:
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_client_closes_what_is_its_own_and_a_wrapper_nothing() -> None:
    own = _Closable()
    async with Client(Script(ok({})).client().caller._transport, owns=(own,)) as client:  # type: ignore[attr-defined]
        async with DryRun(client):
            pass
        assert own.closed == 0
    assert own.closed == 1


# ------------------------------------------------------------------ limits and answers


async def test_the_time_limit_of_a_call_reaches_its_request_and_a_watch_has_none() -> None:
    server = Script(ok(config_map()), streamed())
    client = server.client()
    await client.get(MAPS, "a", "shop", timeout=3)
    assert [event async for event in client.watch(MAPS, "shop", send_initial_events=False)] == []
    assert [request.timeout for request in server.requests] == [3, None]
    assert "sendInitialEvents=false" in server.lines[1]


async def test_a_bookmark_of_a_dict() -> None:
    line = b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}}\n'
    (event,) = [event async for event in Script(streamed(line)).client().watch(MAPS, "shop", bookmarks=True)]
    assert (event.type, event.object["metadata"]["resourceVersion"]) == ("BOOKMARK", "9")


async def test_the_collector_runs_again_after_a_list() -> None:
    assert gc.isenabled()
    await Script(ok({"kind": "ConfigMapList", "items": [config_map()]})).client().list(MAPS, "shop")
    assert gc.isenabled()


@pytest.mark.parametrize("name", [".", ".."])
async def test_a_name_that_would_be_another_path_is_refused(name: str) -> None:
    server = Script(ok(config_map()))
    with pytest.raises(ValueError, match="name"):
        await server.client().get(MAPS, name, "shop")
    assert server.requests == []


async def test_an_answer_without_a_token_is_an_error() -> None:
    with pytest.raises(MalformedAnswer, match="builder"):
        await Script(ok({"status": {}})).client().request_token("builder", "shop")


def test_of_too_many_warnings_the_oldest_may_be_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    log = LogOnce(limit=2)
    for text in ("a", "b", "b", "c", "a", "c"):
        log(ServerWarning(299, "-", text))
    assert [record.args[0] for record in caplog.records if record.args] == ["a", "b", "c", "a"]  # type: ignore[index]
