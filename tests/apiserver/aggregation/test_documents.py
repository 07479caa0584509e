"""The documents of several servers as one: discovery and OpenAPI v2."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.apiserver.aggregation.offers import Offer, offer, part_v2
from konverge.apiserver.aggregation.registered import remote
from konverge.apiserver.openapi import merge_v2
from konverge.wire.message import Response
from tests.apiserver.aggregation.extension import (
    AGGREGATED,
    GROUP,
    SERVICES,
    Extension,
    api_service,
    available,
    reason,
)
from tests.apiserver.api import Api

pytestmark = pytest.mark.spec("S-49")

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
KINDS = "x-kubernetes-group-version-kind"
MERGE = "application/merge-patch+json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
COATS = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/coats"


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}


def path_of(name: str) -> dict[str, Any]:
    return {"get": {"responses": {"200": {"description": "OK", "schema": ref(name)}}}}


def spec_of(paths: dict[str, str], definitions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"paths": {path: path_of(name) for path, name in paths.items()}, "definitions": definitions, **more}


PROPERTIES = {"metadata": ref(f"{META}.ObjectMeta"), "size": {"type": "integer"}}
COAT = {"type": "object", "properties": PROPERTIES}
SPEC = spec_of(
    {COATS: "com.example.Coat", f"/apis/{GROUP}/v2/coats": "Other", "/apis/apps/v1/deployments": "Stranger"},
    {
        "com.example.Coat": COAT,
        f"{META}.ObjectMeta": {"type": "object", "description": "another"},
        "Other": {"type": "object"},
        "Stranger": {"type": "object"},
    },
)


async def v2(api: Api) -> Any:
    return json.loads((await api.send("GET", "/openapi/v2")).body)


async def asked_again(api: Api, made: Extension) -> None:
    """Until the server has looked at the document, and once more, when it had it already."""
    seen = made.unchanged
    while made.unchanged == seen:
        labels = {"asked": str(api.server.store.revision)}
        await api.call("PATCH", f"{SERVICES}/v1.{GROUP}", {"metadata": {"labels": labels}}, content_type=MERGE)
        await asyncio.sleep(0)


async def test_the_document_of_v2_has_what_other_servers_say(api: Api) -> None:
    before = await v2(api)
    async with available(api) as made:
        made.specification = SPEC
        await asked_again(api, made)
        after = await v2(api)
        assert {*after["paths"]} - {*before["paths"]} == {COATS}
        added = {name: after["definitions"][name] for name in {*after["definitions"]} - {*before["definitions"]}}
        renamed = f"{META}.ObjectMeta_v2"
        coat = {**COAT, "properties": {**PROPERTIES, "metadata": ref(renamed)}}
        assert added == {"com.example.Coat": coat, renamed: {"type": "object", "description": "another"}}
        assert {name: after["definitions"][name] for name in before["definitions"]} == before["definitions"]
        protobuf = (await api.send("GET", "/openapi/v2", accept=PROTOBUF)).body
        assert b"com.example.Coat" in protobuf
        assert renamed.encode() in protobuf
        generation = api.server.aggregation.generation
        await asked_again(api, made)
        assert api.server.aggregation.generation > generation, "the APIService was changed"
        assert await v2(api) == after, "what is known is kept"
        await api.call("DELETE", f"{SERVICES}/v1.{GROUP}")
        assert await v2(api) == before


@pytest.mark.parametrize(
    "specification",
    [
        [],
        {"paths": []},
        {"paths": {COATS: 5}},
        {"paths": {COATS: {"get": {"parameters": [{"name": "a"}]}}}, "definitions": {}},
        {"paths": {COATS: {"get": 5}}, "definitions": {}},
        spec_of({COATS: "A"}, {"A": {"properties": []}}),
    ],
)
def test_a_document_that_cannot_be_read_is_none(specification: Any) -> None:
    assert part_v2(json.dumps(specification).encode(), f"/apis/{GROUP}/v1/") is None


def test_a_document_that_is_too_deep_is_none() -> None:
    deep = b'{"items":' * 900 + b"{}" + b"}" * 900
    paths = json.dumps(spec_of({COATS: "A"}, {})["paths"]).encode()
    assert part_v2(b'{"paths":%b,"definitions":{"A":%b}}' % (paths, deep), f"/apis/{GROUP}/v1/") is None


async def test_a_document_that_cannot_be_read_spoils_nothing(api: Api) -> None:
    before = await v2(api)
    async with available(api) as made:
        made.specification = {"paths": {COATS: {"get": 5}}}
        await asked_again(api, made)
        assert await v2(api) == before


# --- the merge alone


def merged(*specs: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {"paths": {}, "definitions": {}, "parameters": {}}
    for spec in specs:
        merge_v2.merge(whole, {"parameters": {}, **spec})
    return whole


@pytest.mark.parametrize(
    ("answer", "stays"), [(None, True), (Response(503), True), (Response(404), False)], ids=["none", "503", "404"]
)
async def test_documents_stay_while_a_server_ends(answer: Response | None, stays: bool) -> None:
    """It answered that it is there, and nothing any more after that."""

    async def ask(path: str, accept: str, etag: str) -> Response | None:
        return answer

    known = Offer(documents={f"apis/{GROUP}/v1": "/openapi/v3/coats"}, v2={"paths": {}}, v2_etag="1")
    wardrobe = remote(api_service())
    assert wardrobe is not None
    made = await offer(ask, wardrobe, b'{"resources": []}', known)
    assert (made.documents, made.v2, made.v2_etag) == (
        (known.documents, known.v2, known.v2_etag) if stays else ({}, None, "")
    )


def test_what_two_servers_say_alike_is_one() -> None:
    kind = {"group": "a", "version": "v1", "kind": "Options"}
    one, other = {"type": "object", KINDS: [kind]}, {"type": "object", KINDS: [{**kind, "group": "b"}, kind]}
    whole = merged(spec_of({"/a": "Options"}, {"Options": one}), spec_of({"/b": "Options"}, {"Options": other}))
    assert whole["definitions"] == {"Options": {"type": "object", KINDS: [kind, {**kind, "group": "b"}]}}
    assert one[KINDS] == [kind], "what was given stays as it is"


def test_the_same_third_meaning_gets_one_name() -> None:
    meanings = [{"type": "object"}, {"type": "string"}, {"type": "array"}, {"type": "string"}]
    specs = [spec_of({f"/{number}": "A"}, {"A": meaning}) for number, meaning in enumerate(meanings)]
    whole = merged(*specs)
    assert whole["definitions"] == {"A": meanings[0], "A_v2": meanings[1], "A_v3": meanings[2]}
    shown = [item["get"]["responses"]["200"]["schema"] for item in whole["paths"].values()]
    assert shown == [ref("A"), ref("A_v2"), ref("A_v3"), ref("A_v2")]


def test_a_new_name_is_one_that_the_newcomer_does_not_use() -> None:
    later = spec_of({"/b": "A"}, {"A": {"type": "string", "items": ref("A_v2")}, "A_v2": {"type": "number"}})
    whole = merged(spec_of({"/a": "A"}, {"A": {"type": "object"}}), later)
    assert whole["definitions"]["A_v3"] == {"type": "string", "items": ref("A_v2")}
    assert whole["definitions"]["A_v2"] == {"type": "number"}


def test_parameters_have_names_of_their_own() -> None:
    def spec(path: str, parameter: dict[str, Any]) -> dict[str, Any]:
        item = {"parameters": [{"$ref": "#/parameters/p"}]}
        return {"paths": {path: item}, "definitions": {}, "parameters": {"p": parameter}}

    whole = merged(spec("/a", {"name": "a"}), spec("/b", {"name": "b"}))
    assert whole["parameters"] == {"p": {"name": "a"}, "p_v2": {"name": "b"}}
    assert whole["paths"]["/b"] == {"parameters": [{"$ref": "#/parameters/p_v2"}]}


def test_a_path_that_is_there_stays_and_what_it_alone_uses_is_left_out() -> None:
    later = spec_of({"/a": "B", "/b": "C"}, {"B": {"items": ref("D")}, "C": {}, "D": {}, "Unused": {}})
    whole = merged(spec_of({"/a": "A"}, {"A": {}}), later)
    assert whole["paths"]["/a"] == path_of("A")
    assert {*whole["definitions"]} == {"A", "C", "Unused"}
    before = json.dumps(whole)
    merge_v2.merge(whole, {"parameters": {}, **spec_of({"/a": "Z"}, {"Z": {}})})
    assert json.dumps(whole) == before


def test_definitions_that_refer_to_themselves_are_walked_once() -> None:
    spec = spec_of({"/a/b": "A", "/c": "C"}, {"A": {"items": ref("B")}, "B": {"items": ref("A")}, "C": {}})
    assert {*merge_v2.restricted(spec, "/a/")["definitions"]} == {"A", "B"}


# --- discovery


async def register(api: Api, version: str, group: str, **spec: Any) -> None:
    body = api_service(group=group, version=version, **spec)
    await api.call("POST", SERVICES, {**body, "metadata": {"name": f"{version}.{group}"}})


async def names(api: Api) -> list[str]:
    old = [group["name"] for group in (await api.call("GET", "/apis"))["groups"]]
    new = (await api.call("GET", "/apis", accept=AGGREGATED))["items"]
    assert [group["metadata"]["name"] for group in new] == old
    return old


async def test_groups_stand_between_the_built_in_ones_by_priority(api: Api) -> None:
    builtin = await names(api)
    await register(api, "v1", "early.example.com", groupPriorityMinimum=17850)
    await register(api, "v1", "first.example.com", groupPriorityMinimum=20000)
    await register(api, "v1", "late.example.com", groupPriorityMinimum=1)
    after = await names(api)
    assert after[:4] == ["apiregistration.k8s.io", "first.example.com", "early.example.com", "apps"]
    assert after[-1] == "late.example.com"
    assert [name for name in after if not name.endswith("example.com")] == builtin


async def test_versions_of_one_group_are_ordered_over_all_servers(api: Api) -> None:
    await register(api, "v9", "apps", versionPriority=100)
    await register(api, "v8", "apps", versionPriority=1)
    group = await api.call("GET", "/apis/apps")
    assert [entry["version"] for entry in group["versions"]] == ["v9", "v1", "v8"]
    items = (await api.call("GET", "/apis", accept=AGGREGATED))["items"]
    (apps,) = [item for item in items if item["metadata"]["name"] == "apps"]
    assert [entry["version"] for entry in apps["versions"]] == ["v9", "v1", "v8"]


async def test_what_a_server_that_is_there_does_not_serve_is_not_stale(api: Api) -> None:
    """One that is away is: nobody knows what it would serve."""
    async with available(api):
        await register(api, "v2", GROUP)
        await register(api, "v3", GROUP, service={"namespace": "default", "name": "elsewhere"})
        items = (await api.call("GET", "/apis", accept=AGGREGATED))["items"]
        (group,) = [item for item in items if item["metadata"]["name"] == GROUP]
        shown = {entry["version"]: (entry["freshness"], "resources" in entry) for entry in group["versions"]}
        assert shown == {"v1": ("Current", True), "v2": ("Current", False), "v3": ("Stale", False)}
        assert await reason(api, "Passed")
