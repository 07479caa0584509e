"""Discovery: groups, resources, the aggregated document; kinds come and go with their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import Api
from tests.apiserver.definitions import define, definition, undefine

pytestmark = pytest.mark.spec("S-02")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ALPHA = {
    "name": "v1alpha1",
    "served": True,
    "storage": False,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}


async def groups(api: Api) -> list[str]:
    return [group["name"] for group in (await api.call("GET", "/apis"))["groups"]]


async def aggregated(api: Api) -> dict[str, Any]:
    document = await api.call("GET", "/apis", accept=AGGREGATED)
    return {group["metadata"]["name"]: group for group in document["items"]}


async def test_the_core_group_lists_its_version_and_address(api: Api) -> None:
    versions = await api.call("GET", "/api", host="server.example:6443")
    assert versions["kind"] == "APIVersions"
    assert versions["serverAddressByClientCIDRs"] == [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": "server.example:6443"}
    ]
    listed = await api.call("GET", "/api/v1")
    assert "apiVersion" not in listed, "as the real server"
    assert next(iter(listed)) == "kind"


async def test_groups_are_ordered_by_rank_and_custom_ones_by_name(api: Api) -> None:
    builtin = await groups(api)
    assert builtin[:2] == ["apiregistration.k8s.io", "apps"]
    await define(api, definition("zebras", "Zebra", group="zoo.example.com"))
    await define(api, definition("ants", "Ant", group="ants.example.com"))
    assert await groups(api) == [*builtin, "ants.example.com", "zoo.example.com"]


async def test_a_custom_group_lists_its_versions_and_resources(api: Api) -> None:
    made = definition("cogs", "Cog", more=[ALPHA], subresources={"status": {}})
    await define(api, made)
    group = await api.call("GET", "/apis/example.com")
    assert [version["version"] for version in group["versions"]] == ["v1", "v1alpha1"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    listed = (await api.call("GET", "/apis/example.com/v1"))["resources"]
    assert [entry["name"] for entry in listed] == ["cogs", "cogs/status"]
    assert listed[0]["shortNames"] == ["co"]
    resource = (await aggregated(api))["example.com"]["versions"][0]["resources"][0]
    assert resource["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Cog"}
    assert resource["subresources"][0]["subresource"] == "status"


async def test_a_custom_group_goes_with_its_definition(api: Api) -> None:
    await define(api, definition("cogs", "Cog"))
    await undefine(api, "cogs.example.com")
    assert "example.com" not in await groups(api)
    assert "example.com" not in await aggregated(api)
    assert (await api.send("GET", "/apis/example.com")).status == 404


async def test_the_etag_changes_with_what_is_served(api: Api) -> None:
    first = await api.send("GET", "/apis", accept=AGGREGATED)
    etag = first.headers.get("etag")
    assert first.headers.get("content-type") == AGGREGATED
    assert first.headers.get("cache-control") == "public"
    again = await api.send("GET", "/apis", accept=AGGREGATED, if_none_match=etag)
    assert (again.status, again.body) == (304, b"")
    await define(api, definition("cogs", "Cog"))
    fresh = await api.send("GET", "/apis", accept=AGGREGATED, if_none_match=etag)
    assert fresh.status == 200
    assert fresh.headers.get("etag") != etag


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{AGGREGATED},application/json", "APIGroupDiscoveryList"),
        (f"application/json,{AGGREGATED}", "APIGroupDiscoveryList"),
        (f"{AGGREGATED.replace('v=v2', 'v=v2beta1')},application/json", "APIGroupList"),
        ("application/vnd.kubernetes.protobuf,application/json", "APIGroupList"),
        ("*/*", "APIGroupList"),
        ("", "APIGroupList"),
    ],
)
async def test_the_accept_header_chooses_the_document(api: Api, accept: str, kind: str) -> None:
    assert (await api.call("GET", "/apis", accept=accept))["kind"] == kind


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        ("/apis", "text/html", "only the following media types are accepted"),
        ("/api", "text/html", "406: Not Acceptable"),
        ("/apis/apps/v1", "text/html", "406: Not Acceptable"),
        ("/apis/apps/v1", AGGREGATED, "only the following media types are accepted"),
        ("/apis", AGGREGATED.replace("v=v2", "v=v2beta1"), "only the following media types are accepted"),
        ("/version", "application/yaml", "Available representations: application/json"),
    ],
)
async def test_an_unknown_media_type_is_not_acceptable(api: Api, path: str, accept: str, message: str) -> None:
    refused = await api.send("GET", path, accept=accept)
    assert refused.status == 406
    assert message in refused.body.decode()


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/apis/nothing.example.com", 404, True),
        ("GET", "/apis/nothing.example.com/v1", 404, True),
        ("GET", "/apis/apps/v9", 404, False),
        ("GET", "/api/v9", 404, False),
        ("POST", "/api", 405, False),
        ("POST", "/apis/apps/v1", 405, False),
        ("POST", "/apis", 200, False),
        ("GET", "/apis/apps/", 200, False),
    ],
)
async def test_unknown_paths_and_methods_are_refused(api: Api, method: str, path: str, status: int, text: bool) -> None:
    answer = await api.send(method, path)
    assert answer.status == status
    assert answer.headers.get("content-type").startswith("text/plain" if text else "application/json")


async def test_the_root_lists_all_paths(api: Api) -> None:
    paths = (await api.call("GET", "/"))["paths"]
    assert paths == sorted(paths)
    assert paths[:3] == ["/.well-known/openid-configuration", "/api", "/api/v1"]
    assert {"/apis/apps/v1", "/openapi/v3", "/openapi/v3/", "/version", "/metrics", "/livez"} <= set(paths)
