"""OpenAPI: documents of built-in and custom kinds, their hashes, and what clients may keep."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from konverge.apiserver import aside
from konverge.apiserver.http.respond import etag_of
from konverge.apiserver.kubernetes_version import MINOR_VERSION
from konverge.apiserver.openapi import builtin, custom, gnostic
from konverge.apiserver.protobuf.special import fields
from konverge.apiserver.registry import Served
from tests.apiserver.api import Api
from tests.apiserver.definitions import define, definition, undefine

pytestmark = pytest.mark.spec("S-02")

SCHEMA = {
    "type": "object",
    "description": "A cog.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["teeth", "mode"],
            "properties": {
                "teeth": {"type": "integer", "default": 8},
                "mode": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "inner": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"a": {"type": "string"}},
                },
                "one": {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
            },
        }
    },
}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


async def v3(api: Api, name: str) -> Any:
    return await api.call("GET", f"/openapi/v3/{name}")


async def test_the_hashes_in_the_data_are_those_of_the_documents() -> None:
    for name, etag in builtin.index().documents.items():
        assert etag_of(builtin.document(name)) == etag, name


async def test_the_index_leads_to_documents_that_may_be_cached(api: Api) -> None:
    index = await api.send("GET", "/openapi/v3")
    assert index.headers.get("content-type") == "text/plain; charset=utf-8"
    url = json.loads(index.body)["paths"]["apis/apps/v1"]["serverRelativeURL"]
    answer = await api.send("GET", url)
    etag = answer.headers.get("etag")
    assert answer.headers.get("cache-control") == "public, immutable"
    assert url.endswith(f"?hash={etag.strip(chr(34))}")
    assert (await api.send("GET", url, if_none_match=etag)).status == 304
    moved = await api.send("GET", "/openapi/v3/apis/apps/v1?hash=OLD")
    assert (moved.status, moved.headers.get("location")) == (301, url)
    plain = await api.send("GET", "/openapi/v3/apis/apps/v1")
    assert plain.headers.get("cache-control") == "no-cache, private"


async def test_a_builtin_document_lists_its_own_group(api: Api) -> None:
    document = await v3(api, "apis/apps/v1")
    schemas = document["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"] == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]
    kinds = schemas[f"{META}.DeleteOptions"]["x-kubernetes-group-version-kind"]
    assert [kind["group"] for kind in kinds] == ["", "apps"]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale" in document["paths"]
    for text in json.dumps(document["components"]).split('"$ref": "#/components/schemas/')[1:]:
        assert text.partition('"')[0] in schemas


async def test_a_custom_document_has_the_schema_of_its_definition(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    made = definition("cogs", "Cog", schema=SCHEMA, subresources={"status": {}, "scale": scale})
    await define(api, made)
    document = await v3(api, "apis/example.com/v1")
    base = "/apis/example.com/v1/namespaces/{namespace}/cogs"
    assert list(document["paths"]) == ["/apis/example.com/v1/cogs", base, f"{base}/{{name}}", f"{base}/{{name}}/scale",
                                    f"{base}/{{name}}/status"]  # fmt: skip
    get = document["paths"][f"{base}/{{name}}"]["get"]
    assert (get["operationId"], get["tags"]) == ("readExampleComV1NamespacedCog", ["exampleCom_v1"])
    assert "io.k8s.api.autoscaling.v1.Scale" in document["components"]["schemas"]
    model = document["components"]["schemas"]["com.example.v1.Cog"]
    assert model["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]
    spec = model["properties"]["spec"]["properties"]
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert spec["inner"]["required"] == ["kind", "apiVersion"]
    assert spec["teeth"] == {"type": "integer", "default": 8}


async def test_a_cluster_wide_kind_without_subresources_has_two_paths(api: Api) -> None:
    await define(api, definition("bolts", "Bolt", scope="Cluster"))
    document = await v3(api, "apis/example.com/v1")
    assert list(document["paths"]) == ["/apis/example.com/v1/bolts", "/apis/example.com/v1/bolts/{name}"]
    assert not [name for name in document["components"]["schemas"] if ".autoscaling." in name]


async def test_the_document_of_a_group_follows_its_kinds(api: Api) -> None:
    await define(api, definition("cogs", "Cog"))
    await define(api, definition("bolts", "Bolt"))
    schemas = (await v3(api, "apis/example.com/v1"))["components"]["schemas"]
    assert {"com.example.v1.Cog", "com.example.v1.BoltList"} <= set(schemas)
    for plural in ("cogs", "bolts"):
        await undefine(api, f"{plural}.example.com")
    assert (await api.send("GET", "/openapi/v3/apis/example.com/v1")).status == 404
    assert "apis/example.com/v1" not in (await api.call("GET", "/openapi/v3"))["paths"]


async def test_v2_leaves_out_what_it_does_not_know(api: Api) -> None:
    await define(api, definition("cogs", "Cog", schema=SCHEMA))
    await define(api, definition("free", "Free"))
    document = await api.call("GET", "/openapi/v2")
    assert document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    assert document["definitions"]["com.example.v1.Free"].keys() == {"type", "x-kubernetes-group-version-kind"}
    spec = document["definitions"]["com.example.v1.Cog"]["properties"]["spec"]
    assert spec["required"] == ["teeth"], "what may be null is not required"
    assert spec["properties"]["teeth"] == {"type": "integer"}
    assert spec["properties"]["mode"] == {}
    assert spec["properties"]["any"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert spec["properties"]["one"] == {"type": "string"}
    assert "/apis/example.com/v1/namespaces/{namespace}/cogs" in document["paths"]


async def test_v2_is_served_as_protobuf(api: Api) -> None:
    answer = await api.send("GET", "/openapi/v2", accept=gnostic.MEDIA_TYPE)
    assert answer.headers.get("content-type") == gnostic.CONTENT_TYPE
    document = fields(answer.body, 0, len(answer.body))
    assert document[1] == b"2.0"
    assert fields(document[2], 0, len(document[2])) == {1: b"Kubernetes", 2: MINOR_VERSION.encode()}
    assert (await api.send("GET", "/openapi/v2", accept="text/html")).status == 406


@pytest.mark.parametrize("path", ["/openapi/v3/apis/nothing", "/openapi/v3/apis/apps/v1/", "/openapi/v3/"])
async def test_unknown_documents_are_not_found(api: Api, path: str) -> None:
    answer = await api.send("GET", path)
    assert (answer.status, answer.body) == (404, b"")


async def test_the_work_of_a_request_that_ended_does_not_disturb_the_next(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large document is made beside the loop, small ones on it: both at the same time."""
    arrived, go_on = threading.Event(), threading.Event()
    document = custom.document

    def made(kinds: list[Served]) -> Any:
        group = kinds[0].resource.group
        if group == "large.com":
            arrived.set()
            assert go_on.wait(60)
        elif group == "two.com":
            go_on.set()
            aside._threads().submit(int).result(60)  # the work before it has ended
        return document(kinds)

    monkeypatch.setattr(custom, "document", made)
    properties = {f"field{number}": {"type": "string"} for number in range(2_000)}
    large = definition("larges", "Large", group="large.com", schema={"type": "object", "properties": properties})
    await define(api, large)
    asking = asyncio.create_task(api.send("GET", "/openapi/v3"))
    while not arrived.is_set():
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    api.server.registry.remove("large.com", "v1", "larges")
    try:
        for group in ("one.com", "two.com"):
            await define(api, definition("smalls", "Small", group=group))
        paths = (await api.call("GET", "/openapi/v3"))["paths"]
    finally:
        go_on.set()
    assert {"apis/one.com/v1", "apis/two.com/v1"} <= paths.keys()
    assert "apis/large.com/v1" not in paths
