"""What each verb puts on the request line, and what it makes of the answer."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import (
    ConnectionLost,
    DryRun,
    Expired,
    FieldOwner,
    MalformedAnswer,
    MergePatch,
    Namespaced,
    Strict,
    merge_between,
)
from konverge.client.binding import bind_class
from konverge.client.call import Call, encode_query, segment
from konverge.client.watch import DECODED_TOGETHER, Blocks, split_event
from konverge.objects import CustomResource, Model, NoStatus
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource
from konverge.wire import ConnectionLost as WireLost
from konverge.wire import Response, Sink
from tests.client.scripted import Script, config_map, ok, refused, streamed

MAPS = Resource("", "v1", "ConfigMap", "configmaps")


def new(name: str = "a", namespace: str = "shop") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


def event(kind: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


async def test_options_become_the_query() -> None:
    server = Script(ok(config_map()))
    client = server.client()
    await client.create(new(), dry_run=True, field_manager="me", field_validation="Strict")
    await client.get(ConfigMap, "a", "shop", resource_version="0")
    await client.apply(new(), field_manager="me", force=True)
    await client.patch(ConfigMap, "a", MergePatch({}), "shop", subresource="status")
    assert server.lines == [
        "POST /api/v1/namespaces/shop/configmaps?dryRun=All&fieldManager=me&fieldValidation=Strict",
        "GET /api/v1/namespaces/shop/configmaps/a?resourceVersion=0",
        "PATCH /api/v1/namespaces/shop/configmaps/a?fieldManager=me&force=true",
        "PATCH /api/v1/namespaces/shop/configmaps/a/status",
    ]
    assert server.requests[2].headers.get("content-type") == "application/apply-patch+yaml"


async def test_delete_options_are_a_body() -> None:
    server = Script(ok({"kind": "Status", "status": "Success"}), ok({"kind": "Pod", "metadata": {"name": "p"}}))
    client = server.client()
    gone = await client.delete(Pod, "p", "shop", grace_period=0, propagation="Orphan", uid="u", if_version="5")
    assert gone is None
    assert json.loads(server.requests[0].body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
    }
    dying = await client.delete(Pod, "p", "shop", dry_run=True)
    assert dying is not None
    assert dying.metadata.name == "p"
    assert server.lines[1].endswith("pods/p?dryRun=All")
    assert json.loads(server.requests[1].body)["dryRun"] == ["All"]


async def test_a_dry_run_of_a_deletion_is_said_in_the_body_because_the_query_is_not_looked_at() -> None:
    server = Script(ok({"kind": "Status", "status": "Success"}))
    client = DryRun(server.client())
    await client.delete(ConfigMap, "a", "shop", uid="u")
    await client.delete_collection(ConfigMap, "shop")
    assert [json.loads(request.body)["dryRun"] for request in server.requests] == [["All"], ["All"]]
    assert json.loads(server.requests[0].body)["preconditions"] == {"uid": "u"}


async def test_what_is_refused_before_it_is_sent() -> None:
    server = Script(ok(config_map()))
    client = server.client()
    with pytest.raises(ValueError, match="name of the object is missing"):
        await client.delete(ConfigMap, "", "shop")
    with pytest.raises(ValueError, match="the kind is namespaced"):
        await client.get(ConfigMap, "a")
    with pytest.raises(ValueError, match="the kind is namespaced"):
        await client.delete_collection(ConfigMap)
    with pytest.raises(ValueError, match="field_manager"):
        await client.apply(new())
    with pytest.raises(ValueError, match="cannot be the name"):
        await client.get(ConfigMap, "..", "shop")
    with pytest.raises(ValueError, match="says namespace 'shop'"):
        await client.create(new(), "other")
    with pytest.raises(TypeError, match="would drop the fields"):
        await client.update(new())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs apiVersion and kind"):
        await client.create({"metadata": {"name": "a"}})
    with pytest.raises(ValueError, match="name of the object is missing"):
        await client.evict("", "shop")
    with pytest.raises(TypeError, match=r"there is no option 'label_selectr'; there are .*label_selector"):
        await client.delete_collection(ConfigMap, "shop", label_selectr="app=web")  # type: ignore[call-overload]
    assert server.requests == []


async def test_a_log_that_breaks_is_an_error_of_the_client() -> None:
    async def broken(sink: Sink) -> None:
        sink.write(b"one\ntwo")
        await sink.drain()
        raise WireLost("gone")

    lines = Script(Response(200, producer=broken)).client().log_lines("web", "shop")
    assert await anext(lines) == "one"
    with pytest.raises(ConnectionLost, match="log of shop/web"):
        await anext(lines)


async def test_wrappers_combine() -> None:
    server = Script(ok(config_map()))
    client = Strict(FieldOwner(DryRun(Namespaced(server.client(), "shop")), "me"))
    await client.apply(new(namespace=""))
    query = parse_qs(urlsplit(server.requests[0].target).query)
    assert query == {"dryRun": ["All"], "fieldManager": ["me"], "fieldValidation": ["Strict"]}
    with pytest.raises(ValueError, match="works in namespace 'shop'"):
        await client.get(ConfigMap, "a", "other")
    await client.get(Node, "n")
    assert server.lines[-1] == "GET /api/v1/nodes/n"


async def test_the_field_manager_of_a_call_counts_more_than_that_of_the_client() -> None:
    server = Script(ok(config_map()))
    client = FieldOwner(server.client(), "usual")
    await client.apply(new())
    await client.apply(new(), field_manager="other")
    assert [line.partition("?")[2] for line in server.lines] == ["fieldManager=usual", "fieldManager=other"]


async def test_later_pages_are_asked_for_by_their_token_alone() -> None:
    page = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": "more"}, "items": []}
    server = Script(ok(page), ok({**page, "metadata": {}}))
    options: Any = {"resource_version": "7", "resource_version_match": "Exact", "label_selector": "a=b"}
    _ = [listed async for listed in server.client().pages(ConfigMap, "shop", limit=2, **options)]
    queries = [parse_qs(line.partition("?")[2]) for line in server.lines]
    assert queries[0]["resourceVersionMatch"] == ["Exact"]
    assert queries[1] == {"continue": ["more"], "labelSelector": ["a=b"], "limit": ["2"]}


async def test_an_object_can_be_had_as_it_came() -> None:
    server = Script(ok(config_map()))
    assert json.loads(await server.client().get_bytes(ConfigMap, "a", "shop")) == config_map()
    assert server.lines == ["GET /api/v1/namespaces/shop/configmaps/a"]


def test_true_is_not_one_in_a_patch() -> None:
    assert merge_between({"a": 1, "b": 1.0}, {"a": True, "b": 1.0}).body == {"a": True}


async def test_dicts_of_a_list_know_their_kind() -> None:
    server = Script(ok({"kind": "ConfigMapList", "metadata": {}, "items": [{"metadata": {"name": "a"}}]}))
    listing = await server.client().list(MAPS)
    assert listing[0] == {"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "ConfigMap"}


async def test_an_answer_that_does_not_fit() -> None:
    with pytest.raises(MalformedAnswer, match="plain dict"):
        await Script(ok({"metadata": 7})).client().get(ConfigMap, "a", "shop")
    with pytest.raises(MalformedAnswer):
        await Script(ok(b"<html>")).client().list(MAPS)


def page(token: str, *names: str) -> Any:
    return ok({"metadata": {"resourceVersion": "5", "continue": token}, "items": [config_map(name) for name in names]})


async def test_an_expired_page_is_an_error_or_goes_on_as_told() -> None:
    gone = refused(410, "Expired", metadata={"continue": "fresh"})
    with pytest.raises(Expired):
        async for _ in Script(page("t", "a"), gone).client().pages(ConfigMap):
            pass
    server = Script(page("t", "a"), gone, page("", "b"))
    names = [item.metadata.name async for item in server.client().each(ConfigMap, consistent=False)]
    assert names == ["a", "b"]
    assert server.lines[2].endswith("limit=500&continue=fresh")


async def test_watch_events_in_any_chunks() -> None:
    text = event("ADDED", config_map("a")) + event("DELETED", config_map("b")) + event("BOOKMARK", {"metadata": {}})
    for size in (1, 7, 100, len(text)):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        server = Script(streamed(*chunks))
        typed = [seen_event.type async for seen_event in server.client().watch(ConfigMap)]
        raw = [kind async for batch in server.client().watch_bytes(ConfigMap) for kind, _ in batch]
        assert typed == raw == ["ADDED", "DELETED", "BOOKMARK"]
    assert server.lines[0] == "GET /api/v1/configmaps?allowWatchBookmarks=true&watch=1"


@pytest.mark.parametrize("way", ["typed", "raw"])
async def test_an_error_event_comes_after_those_before_it(way: str) -> None:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
    client = Script(streamed(event("ADDED", config_map("a")) + event("ERROR", status))).client()
    seen: list[str] = []

    async def read() -> None:
        if way == "typed":
            async for seen_event in client.watch(Pod):
                seen.append(seen_event.type)
        else:
            async for batch in client.watch_bytes(Pod):
                seen.extend(kind for kind, _ in batch)

    with pytest.raises(Expired, match="too old"):
        await read()
    assert seen == ["ADDED"]


async def test_a_bookmark_is_a_zero_value_and_does_not_end_the_watch() -> None:
    spec = {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "strategy": {}}
    zero = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"resourceVersion": "9"}, "spec": spec}
    real = {"metadata": {"name": "web"}, "spec": {"replicas": 3}}
    text = event("ADDED", real) + event("BOOKMARK", zero) + event("MODIFIED", real)
    seen = [seen_event async for seen_event in Script(streamed(text)).client().watch(Deployment)]
    assert [seen_event.type for seen_event in seen] == ["ADDED", "BOOKMARK", "MODIFIED"]
    assert seen[1].object.metadata.resource_version == "9"
    assert seen[2].object.spec.replicas == 3


class ShopSpec(Model):
    owner: str


class Shop(CustomResource[ShopSpec, NoStatus], group="test.konverge.dev", version="v1"):
    """A kind that cannot be without a spec."""


async def test_a_bookmark_of_a_kind_with_a_required_spec_does_not_end_the_watch() -> None:
    zero = {"kind": "Shop", "apiVersion": "test.konverge.dev/v1", "metadata": {"resourceVersion": "9"}}
    text = event("BOOKMARK", zero) + event("ADDED", {**zero, "spec": {"owner": "jane"}})
    seen = [seen_event async for seen_event in Script(streamed(text)).client().watch(Shop)]
    assert [seen_event.object.metadata.resource_version for seen_event in seen] == ["9", "9"]
    assert seen[1].object.spec.owner == "jane"


async def test_many_events_at_once_are_the_same_as_few() -> None:
    names = [f"{number:04}" for number in range(1000)]  # far more than are decoded together
    text = b"".join(event("ADDED", config_map(name, text="x" * 200)) for name in names)
    assert len(text) > 2 * DECODED_TOGETHER
    seen = [seen_event.object.metadata.name async for seen_event in Script(streamed(text)).client().watch(ConfigMap)]
    assert seen == names


@pytest.mark.parametrize(
    ("options", "compressed"),
    [
        ({}, True),
        ({"resource_version": "0"}, True),
        ({"resource_version": "7", "send_initial_events": True, "resource_version_match": "NotOlderThan"}, True),
        ({"resource_version": "7"}, False),
    ],
)
async def test_single_events_are_not_asked_for_compressed(options: dict[str, Any], compressed: bool) -> None:
    server = Script(streamed(b""))
    assert [event async for event in server.client().watch(ConfigMap, **options)] == []
    assert [batch async for batch in server.client().watch_bytes(ConfigMap, **options)] == []
    encodings = {request.headers.get("accept-encoding") for request in server.requests}
    assert encodings == ({""} if compressed else {"identity"})


def test_objects_do_not_hold_the_message_that_brought_them_all() -> None:
    """Their managedFields are windows into what they were decoded from, until they are detached."""
    body = config_map("a")
    body["metadata"]["managedFields"] = [{"manager": "m"}]
    binding = bind_class(ConfigMap)
    message: Any = bytearray(json.dumps({"items": [body] * 3}).encode())
    listed = binding.decode_list(message).items
    message.clear()  # raises BufferError while anybody looks into it
    message += event("ADDED", body) * 3
    watched = [watch_event.object for watch_event in binding.decode_events(message)]
    message.clear()
    assert {item.metadata.managed_fields[0].manager for item in (*listed, *watched)} == {"m"}


async def test_a_watch_that_breaks() -> None:
    with pytest.raises(ConnectionLost, match="middle of an event"):
        async for _ in Script(streamed(b'{"type":"ADD')).client().watch(ConfigMap):
            pass
    for text in (b"nonsense\n", event("NOVEL", config_map()), event("ADDED", {"metadata": 7})):
        with pytest.raises(MalformedAnswer):
            async for _ in Script(streamed(text)).client().watch(ConfigMap):
                pass


def test_an_endless_line_is_not_kept() -> None:
    blocks = Blocks(limit=10)
    blocks.feed(b"12345")
    with pytest.raises(MalformedAnswer, match="longer than 10"):
        blocks.feed(b"678901")


def test_other_spellings_of_an_event() -> None:
    assert split_event(b'{ "object": {"a": 1}, "type": "ADDED" }') == ("ADDED", b'{"a": 1}')


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 9))
def test_blocks_keep_every_byte(lines: list[bytes], size: int) -> None:
    text = b"".join(line + b"\n" for line in lines) + b"rest"
    blocks = Blocks()
    received: list[bytes] = []
    for start in range(0, len(text), size):
        block = blocks.feed(text[start : start + size])
        if block is not None:
            received += block.split(b"\n")
    assert received == lines
    assert blocks.rest == b"rest"


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an object"):
        segment(name)


def test_what_the_server_writes_plainly_in_a_path_is_plain() -> None:
    assert segment("system:node:n@k") == "system:node:n@k"
    assert segment("") == ""
    assert segment("a:b@c/d e") == "a:b@c%2Fd%20e"


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_a_name_is_one_segment_and_comes_back(name: str) -> None:
    quoted = segment(name)
    assert unquote(quoted) == name
    assert quoted.isascii()
    assert not set(quoted) & set("/?# %") - {"%"}


@given(st.dictionaries(st.sampled_from(["labelSelector", "continue", "limit"]), st.text(min_size=1)))
def test_a_query_comes_back(query: dict[str, str]) -> None:
    assert parse_qs(encode_query(query), keep_blank_values=True) == {key: [value] for key, value in query.items()}


_json = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from("abcd"), _json, max_size=4)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as the RFC writes it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(_objects, _objects)
def test_the_patch_between_two_objects_leads_from_one_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert merged(before, merge_between(before, after).body) == after
    assert not merge_between(after, after)


async def test_a_dry_run_of_a_deletion_without_options() -> None:
    server = Script(ok({"kind": "Status"}))
    await DryRun(server.client()).caller.call(Call("delete", ConfigMap.resource, "shop", "a"))
    assert json.loads(server.requests[0].body) == {"dryRun": ["All"]}
