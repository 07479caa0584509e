"""Options, pages, subresources and wrappers: what is sent for what was said."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from konverge.client import (
    Client,
    DryRun,
    Expired,
    FieldOwner,
    MalformedAnswer,
    MergePatch,
    Namespaced,
    Recording,
    ServerWarning,
    Strict,
    parse_warnings,
)
from konverge.client.options import delete_body, to_query
from konverge.client.warnings import LogOnce, ignore
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.autoscaling_v1 import Scale
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource
from tests.client.scripted import Script, config_map, ok, refused
from tests.client.test_requests import HERE, MAPS

DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"


class Selector:
    """A parsed selector; its text is what counts."""

    def __str__(self) -> str:
        return "a in (b)"


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (
            {"label_selector": Selector(), "field_selector": "a=b"},
            {"labelSelector": "a in (b)", "fieldSelector": "a=b"},
        ),
        (
            {"send_initial_events": True, "bookmarks": True},
            {"sendInitialEvents": "true", "allowWatchBookmarks": "true"},
        ),
        ({"send_initial_events": False, "bookmarks": False}, {"sendInitialEvents": "false"}),
        ({"dry_run": False, "force": False, "field_manager": None}, {}),
        ({"dry_run": True, "force": True}, {"dryRun": "All", "force": "true"}),
        ({"limit": 0, "timeout_seconds": 0}, {"limit": "0", "timeoutSeconds": "0"}),
        (
            {"continue_token": "t", "resource_version_match": "Exact"},
            {"continue": "t", "resourceVersionMatch": "Exact"},
        ),
        ({"timeout": 3, "grace_period": 1, "propagation": "Orphan", "uid": "u", "if_version": "5"}, {}),
        ({"timeout": 3, "limit": 5, "label_selector": None, "field_manager": "m"}, {"limit": "5", "fieldManager": "m"}),
    ],
)
def test_the_query_of_options(options: dict[str, Any], query: dict[str, str]) -> None:
    assert to_query(options) == query


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, {}),
        ({"dry_run": False, "grace_period": None, "propagation": None, "uid": "", "if_version": None}, {}),
        ({"grace_period": 0}, {"gracePeriodSeconds": 0}),
        ({"uid": "u"}, {"preconditions": {"uid": "u"}}),
        ({"if_version": "5"}, {"preconditions": {"resourceVersion": "5"}}),
        ({"dry_run": True, "propagation": "Orphan"}, {"dryRun": ["All"], "propagationPolicy": "Orphan"}),
    ],
)
def test_the_body_of_a_deletion(options: dict[str, Any], body: dict[str, Any]) -> None:
    assert delete_body(options) == {"kind": "DeleteOptions", "apiVersion": "v1", **body}


# ------------------------------------------------------------------ pages


def page(token: str, *names: str) -> Any:
    return ok({"metadata": {"continue": token}, "items": [config_map(name) for name in names]})


async def test_pages_have_five_hundred_items_unless_said() -> None:
    server = Script(page("t", "a"), page("", "b"))
    assert [len(listed) async for listed in server.client().pages(ConfigMap, "shop")] == [1, 1]
    assert server.lines == [f"GET {HERE}/configmaps?limit=500", f"GET {HERE}/configmaps?limit=500&continue=t"]


async def test_a_first_page_that_expired_is_an_error_also_for_those_who_take_any_moment() -> None:
    gone = refused(410, "Expired", metadata={"continue": "fresh"})
    for options in ({}, {"resource_version": "7"}):
        server = Script(gone)
        with pytest.raises(Expired):
            await anext(server.client().pages(MAPS, "shop", consistent=False, **options))  # type: ignore[call-overload]
        assert len(server.requests) == 1


async def test_a_later_page_that_expired_without_a_token_is_an_error() -> None:
    server = Script(page("t", "a"), refused(410, "Expired"))
    seen: list[str] = []

    async def read() -> None:
        async for item in server.client().each(MAPS, "shop", consistent=False):
            seen.append(item["metadata"]["name"])

    with pytest.raises(Expired):
        await read()
    assert (seen, len(server.requests)) == (["a"], 2)


async def test_pages_can_be_begun_in_the_middle() -> None:
    gone = refused(410, "Expired", metadata={"continue": "fresh"})
    server = Script(gone, page("", "b"))
    client = server.client()
    items = client.each(ConfigMap, "shop", consistent=False, continue_token="mine", limit=2)
    assert [item.metadata.name async for item in items] == ["b"]
    assert [line.partition("?")[2] for line in server.lines] == ["continue=mine&limit=2", "continue=fresh&limit=2"]


# ------------------------------------------------------------------ objects and subresources


async def test_the_namespace_of_the_call_serves_an_object_without_one() -> None:
    server = Script(ok(config_map()))
    client = server.client()
    await client.create({"metadata": {"name": "a"}}, "shop", resource=MAPS)
    await client.create({}, "shop", resource=MAPS)
    await client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-")), "shop")
    await client.replace(ConfigMap(metadata=ObjectMeta(name="a")), "shop", subresource="status")
    await client.replace(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")), "shop")
    assert server.lines == [
        *[f"POST {HERE}/configmaps"] * 3,
        f"PUT {HERE}/configmaps/a/status",
        f"PUT {HERE}/configmaps/a",
    ]


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
async def test_a_dict_that_does_not_say_what_it_is(missing: str) -> None:
    obj = {key: value for key, value in config_map().items() if key != missing}
    server = Script(ok(config_map()))
    with pytest.raises(ValueError, match="a dict needs apiVersion and kind"):
        await server.client().create(obj)
    assert server.requests == []


async def test_subresources_by_name() -> None:
    answer = {"kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    server = Script(ok(answer))
    client = server.client()
    assert await client.get_sub(Deployment, "web", "scale", "shop", resource_version="0") == answer
    scale = await client.get_sub(Deployment, "web", "scale", "shop", into=Scale)
    assert isinstance(scale, Scale)
    assert scale.spec is not None
    assert scale.spec.replicas == 3
    assert await client.create_sub(Deployment, "web", "x", {"a": 1}, "shop", field_manager="me") == answer
    assert await client.patch_sub(Deployment, "web", "scale", MergePatch({"b": 1}), "shop", dry_run=True) == answer
    assert server.lines == [
        f"GET {DEPLOYMENT}/scale?resourceVersion=0",
        f"GET {DEPLOYMENT}/scale",
        f"POST {DEPLOYMENT}/x?fieldManager=me",
        f"PATCH {DEPLOYMENT}/scale?dryRun=All",
    ]
    assert [json.loads(request.body) for request in server.requests[2:]] == [{"a": 1}, {"b": 1}]
    media = [request.headers.get("content-type") for request in server.requests[2:]]
    assert media == ["application/json", "application/merge-patch+json"]


async def test_an_eviction_of_a_client_for_one_namespace() -> None:
    server = Script(ok({}))
    await Namespaced(server.client(), "shop").evict("p", dry_run=True, uid="u")
    assert server.lines == [f"POST {HERE}/pods/p/eviction?dryRun=All"]
    body = json.loads(server.requests[0].body)
    assert body["metadata"] == {"name": "p"}
    assert (body["deleteOptions"]["dryRun"], body["deleteOptions"]["preconditions"]) == (["All"], {"uid": "u"})


async def test_a_subresource_that_cannot_be_read_is_named() -> None:
    with pytest.raises(MalformedAnswer, match=r"^scale: the answer does not fit"):
        await Script(ok(b"<html>")).client().get_sub(Deployment, "web", "scale", "shop")
    with pytest.raises(MalformedAnswer, match="request for a token of 'builder' has none"):
        await Script(ok({"status": {"token": "t"}})).client().request_token("builder", "shop")


async def test_a_token_is_not_in_what_is_logged_of_it() -> None:
    issued = {"status": {"token": "secret", "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    token = await Script(ok(issued)).client().request_token("builder", "shop")
    assert repr(token) == "IssuedToken(expires='2026-01-01T00:00:00Z')"


async def test_the_version_of_the_server() -> None:
    server = Script(ok({"gitVersion": "v1.37.1"}))
    assert await server.client().version() == {"gitVersion": "v1.37.1"}
    assert server.lines == ["GET /version"]
    with pytest.raises(MalformedAnswer, match="/version is not JSON"):
        await Script(ok(b"<html>")).client().version()


# ------------------------------------------------------------------ wrappers and warnings


class Far:
    """A transport to a server elsewhere."""

    send = stream = None


@pytest.mark.parametrize("wrap", [lambda c: c, DryRun, Strict, Recording, lambda c: Namespaced(c, "shop")])
def test_a_wrapped_client_is_as_near_as_the_one_inside(wrap: Any) -> None:
    assert wrap(Script(ok({})).client()).caller.near
    assert not wrap(Client(Far())).caller.near  # type: ignore[arg-type]


async def test_owner_and_strictness_concern_what_writes_fields() -> None:
    server = Script(ok(config_map()))
    client = Strict(FieldOwner(server.client(), "me"))
    await client.get(MAPS, "a", "shop")
    await client.delete(MAPS, "a", "shop")
    await client.delete_collection(MAPS, "shop")
    await client.update(config_map(), resource=MAPS)
    await client.create(config_map(), resource=MAPS, field_validation="Ignore")
    queries = [line.partition("?")[2] for line in server.lines]
    assert queries[:3] == ["", "", ""]
    assert {*queries[3].split("&")} == {"fieldManager=me", "fieldValidation=Strict"}
    assert {*queries[4].split("&")} == {"fieldManager=me", "fieldValidation=Ignore"}


async def test_a_kind_by_its_resource_a_name_or_its_class_is_the_same_request() -> None:
    served = {
        "resource": "configmaps",
        "responseKind": {"kind": "ConfigMap"},
        "scope": "Namespaced",
        "shortNames": ["cm"],
    }
    core = {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [served]}]}]}
    answers = {"/api": core, "/apis": {"kind": "APIGroupDiscoveryList", "items": []}}
    server = Script(lambda request: ok(answers.get(request.target, config_map())))
    client = server.client()
    for kind in (ConfigMap, Resource("", "v1", "ConfigMap", "configmaps"), "cm"):
        await client.get(kind, "a", "shop")
        await client.get_bytes(kind, "a", "shop")
        await client.send_patch(kind, "a", MergePatch({}), "shop")
        await client.delete(kind, "a", "shop")
    asked = [line for line in server.lines if "/configmaps/" in line]
    assert asked == [f"{method} {HERE}/configmaps/a" for method in ("GET", "GET", "PATCH", "DELETE")] * 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('299 kube "a" "Mon, 16 Nov 2026 00:00:00 GMT",  110 - "b"', [(299, "kube", "a"), (110, "-", "b")]),
        ('299 - ""', [(299, "-", "")]),
        ('29 - "a"', []),
        ('299 - "a" nonsense, 299 - "b"', []),
        ("", []),
    ],
)
def test_the_warnings_of_a_header(value: str, expected: list[tuple[int, str, str]]) -> None:
    assert parse_warnings(value) == expected


def test_the_oldest_warning_is_forgotten_when_there_are_too_many(caplog: pytest.LogCaptureFixture) -> None:
    handler = LogOnce(limit=2)
    with caplog.at_level(logging.WARNING, "konverge.client"):
        for text in ("a", "b", "a", "c", "b", "c", "a", "c"):
            handler(ServerWarning(299, "-", text))
        ignore(ServerWarning(299, "-", "unheard"))
    assert [record.getMessage()[-1] for record in caplog.records] == ["a", "b", "c", "a"]
