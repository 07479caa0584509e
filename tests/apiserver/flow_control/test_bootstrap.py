"""The FlowSchemas and levels that every server has come back, and keep to what is suggested."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.flow_control.bootstrap import AUTO_UPDATE, EVERY
from tests.apiserver.api import Api

pytestmark = [pytest.mark.spec("S-56"), pytest.mark.virtual]

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{FLOW}/flowschemas", f"{FLOW}/prioritylevelconfigurations"
FAIR = {"limited": {"nominalConcurrencyShares": 77}}


async def _names(api: Api, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.call("GET", path))["items"]]


def _flag(obj: Any) -> Any:
    return obj["metadata"].get("annotations", {}).get(AUTO_UPDATE)


@pytest.mark.parametrize("path", [SCHEMAS, LEVELS])
async def test_what_is_deleted_comes_back_within_a_minute(api: Api, path: str) -> None:
    before = await api.call("GET", path)
    await api.call("DELETE", path)
    assert await _names(api, path) == []
    await asyncio.sleep(EVERY)
    after = await api.call("GET", path)
    assert [(item["metadata"]["name"], item["spec"]) for item in after["items"]] == [
        (item["metadata"]["name"], item["spec"]) for item in before["items"]
    ]
    assert {_flag(item) for item in after["items"]} == {"true"}
    assert {item["metadata"]["managedFields"][0]["manager"] for item in after["items"]} == {
        "api-priority-and-fairness-config-producer-v1"
    }


async def test_a_schema_that_came_back_has_its_condition(api: Api) -> None:
    await api.call("DELETE", f"{SCHEMAS}/probes")
    await asyncio.sleep(EVERY)
    (condition,) = (await api.call("GET", f"{SCHEMAS}/probes"))["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Dangling", "False")


async def test_a_suggested_object_follows_what_is_suggested(api: Api) -> None:
    before = (await api.call("GET", f"{LEVELS}/workload-low"))["spec"]
    await api.patch(f"{LEVELS}/workload-low", {"spec": FAIR})
    await asyncio.sleep(EVERY)
    after = await api.call("GET", f"{LEVELS}/workload-low")
    assert (after["spec"], after["metadata"]["generation"], _flag(after)) == (before, 3, "true")


@pytest.mark.parametrize(("annotation", "kept"), [("false", True), ("F", True), ("true", False), ("T", False)])
async def test_the_annotation_says_whether_it_does(api: Api, annotation: str, kept: bool) -> None:
    annotations = {"annotations": {AUTO_UPDATE: annotation}}
    await api.patch(f"{LEVELS}/workload-low", {"metadata": annotations, "spec": FAIR})
    await asyncio.sleep(EVERY)
    after = await api.call("GET", f"{LEVELS}/workload-low")
    assert (after["spec"]["limited"]["nominalConcurrencyShares"] == 77) is kept
    assert _flag(after) == annotation


@pytest.mark.parametrize(("spec", "flag"), [({}, "true"), (FAIR, "false")])
@pytest.mark.parametrize("annotation", [None, "maybe"])
async def test_without_a_word_the_generation_decides(api: Api, annotation: Any, spec: Any, flag: str) -> None:
    """Who has changed the spec once keeps it."""
    await api.patch(f"{LEVELS}/workload-low", {"metadata": {"annotations": {AUTO_UPDATE: annotation}}, "spec": spec})
    await asyncio.sleep(EVERY)
    after = await api.call("GET", f"{LEVELS}/workload-low")
    assert _flag(after) == flag
    assert (after["spec"]["limited"]["nominalConcurrencyShares"] == 77) is bool(spec)


async def test_a_mandatory_object_cannot_be_freed_by_its_annotation(api: Api) -> None:
    await api.patch(f"{SCHEMAS}/catch-all", {"metadata": {"annotations": {AUTO_UPDATE: "false", "mine": "x"}}})
    await asyncio.sleep(EVERY)
    after = await api.call("GET", f"{SCHEMAS}/catch-all")
    assert after["metadata"]["annotations"] == {AUTO_UPDATE: "true", "mine": "x"}
    assert after["metadata"]["generation"] == 1


async def test_the_shares_of_the_exempt_level_are_free(api: Api) -> None:
    await api.patch(f"{LEVELS}/exempt", {"spec": {"exempt": {"nominalConcurrencyShares": 5}}})
    before = api.server.store.revision
    await asyncio.sleep(EVERY)
    assert api.server.store.revision == before


@pytest.mark.parametrize(
    ("annotations", "stays"), [({}, True), ({AUTO_UPDATE: "false"}, True), ({AUTO_UPDATE: "true"}, False)]
)
async def test_who_claims_to_be_suggested_and_is_not_is_removed(api: Api, annotations: Any, stays: bool) -> None:
    spec = {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 500}
    await api.call("POST", SCHEMAS, {"metadata": {"name": "mine", "annotations": annotations}, "spec": spec})
    await asyncio.sleep(EVERY)
    assert ("mine" in await _names(api, SCHEMAS)) is stays


async def test_nothing_is_written_where_nothing_has_changed(api: Api) -> None:
    before = api.server.store.revision
    await asyncio.sleep(3 * EVERY)
    assert api.server.store.revision == before


async def test_looks_are_a_minute_apart_from_the_start(api: Api) -> None:
    await asyncio.sleep(EVERY - 10)
    await api.call("DELETE", f"{SCHEMAS}/probes")
    await asyncio.sleep(5)
    assert "probes" not in await _names(api, SCHEMAS)
    await asyncio.sleep(6)
    assert "probes" in await _names(api, SCHEMAS)


async def test_a_server_that_starts_again_restores_at_once(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        await Api(server).patch(f"{LEVELS}/workload-low", {"spec": FAIR})
    async with ApiServer(data_dir=tmp_path) as server:
        restored = await Api(server).call("GET", f"{LEVELS}/workload-low")
    assert restored["spec"]["limited"]["nominalConcurrencyShares"] == 100
