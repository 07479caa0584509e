"""Field selectors of custom resources: the fields of the version that is asked, however objects are stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.admission.hooks import webhook_server
from tests.apiserver.api import Api
from tests.apiserver.crd import applied_versions as versions
from tests.apiserver.crd.recordings import DEFINITIONS
from tests.apiserver.crd.served import define

pytestmark = pytest.mark.spec("S-55")


def _boxes(definition: Any, version: str) -> str:
    return f"/apis/{definition['spec']['group']}/{version}/namespaces/default/boxes"


async def _names(api: Api, path: str, **query: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.call("GET", path, query=query))["items"]]


async def _box(api: Api, path: str, name: str, **spec: str) -> Any:
    version = path.removeprefix("/apis/").partition("/namespaces")[0]
    return await api.call(
        "POST", path, {"apiVersion": version, "kind": "Box", "metadata": {"name": name}, "spec": spec}
    )


@pytest.mark.parametrize("stored", ["v1", "v2"])
async def test_each_version_is_selected_by_its_own_fields(api: Api, stored: str) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = versions.Webhook()
        place = {"url": f"{hooks.url}/convert", "caBundle": hooks.bundle}
        definition = versions.selectable("a", stored, place)
        await define(api, definition)
        one, two = (_boxes(definition, version) for version in ("v1", "v2"))
        first = (await _box(api, one, "small", size="1"))["metadata"]["resourceVersion"]
        await _box(api, two, "large", dims="9")
        assert await _names(api, one, fieldSelector="spec.size=1") == ["small"]
        assert await _names(api, one, fieldSelector="spec.size=9") == ["large"]
        assert await _names(api, two, fieldSelector="spec.dims=1") == ["small"]
        assert await _names(api, two, fieldSelector="spec.dims!=1") == ["large"]
        then = {"resourceVersion": first, "resourceVersionMatch": "Exact"}
        assert await _names(api, two, fieldSelector="spec.dims=1", **then) == ["small"]
        async with api.watch(two, fieldSelector="spec.dims=9", resourceVersion="0") as watch:
            assert await watch.take(1) == [("ADDED", "large")]
            await api.patch(f"{one}/small", {"spec": {"size": "9"}})
            await api.patch(f"{one}/large", {"spec": {"size": "10"}})
            assert await watch.take(2) == [("ADDED", "small"), ("DELETED", "large")]
        await api.call("DELETE", two, query={"fieldSelector": "spec.dims=10"})
        assert await _names(api, one) == ["small"]


async def test_a_list_of_an_earlier_state_is_selected_by_a_version_that_came_later(api: Api) -> None:
    """Nothing has asked for the object as it was then, so nobody has converted it."""
    async with webhook_server() as hooks:
        hooks.replies["convert"] = versions.Webhook()
        place = {"url": f"{hooks.url}/convert", "caBundle": hooks.bundle}
        definition = versions.selectable("a", "v1", place)
        unserved = versions.selectable("a", "v1", place)
        unserved["spec"]["versions"][2]["served"] = False
        await define(api, unserved)
        one, two = (_boxes(definition, version) for version in ("v1", "v2"))
        then = (await _box(api, one, "a", size="1"))["metadata"]["resourceVersion"]
        await api.patch(f"{one}/a", {"spec": {"size": "2"}})
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        await api.patch(path, {"spec": {"versions": definition["spec"]["versions"]}})
        query = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
        assert await _names(api, two, fieldSelector="spec.dims=1", **query) == ["a"]


async def test_without_a_webhook_a_selector_sees_what_is_shown(api: Api) -> None:
    """A default of the stored version that came after the object, and not what the version does not declare."""
    definition = versions.selectable("a", "v1", None)
    await define(api, definition)
    one, two = (_boxes(definition, version) for version in ("v1", "v2"))
    await _box(api, one, "a", size="1")
    fields = definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["weight"] = {"type": "string", "default": "heavy"}
    definition["spec"]["versions"][1]["selectableFields"].append({"jsonPath": ".spec.weight"})
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    await api.patch(path, {"spec": {"versions": definition["spec"]["versions"]}})
    assert await _names(api, one, fieldSelector="spec.weight=heavy") == ["a"]
    assert await _names(api, two, fieldSelector="spec.dims=1") == []
