"""Lists: versions, pages that stay consistent while others write, and what expires."""

from __future__ import annotations

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from konverge.apiserver.storage import HistoryLimits
from tests.apiserver.api import CONFIG_MAPS, Api


def names(listed: dict[str, object]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]  # type: ignore[attr-defined]


@pytest.mark.spec("S-05")
async def test_pages_are_one_consistent_list_while_others_write(api: Api) -> None:
    for number in range(7):
        await api.create(f"c{number}")
    first = await api.call("GET", CONFIG_MAPS, query={"limit": 3})
    await api.call("DELETE", f"{CONFIG_MAPS}/c4")
    await api.create("c3a")
    await api.patch(f"{CONFIG_MAPS}/c5", {"data": {"a": "changed"}})
    pages, listed = names(first), first
    while token := listed["metadata"].get("continue"):
        listed = await api.call("GET", CONFIG_MAPS, query={"limit": 3, "continue": token})
        assert listed["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert all("data" not in item for item in listed["items"])
        pages += names(listed)
    assert pages == [f"c{number}" for number in range(7)]
    assert names(await api.call("GET", CONFIG_MAPS)) == ["c0", "c1", "c2", "c3", "c3a", "c5", "c6"]


async def test_remaining_items_are_counted_without_selectors_only(api: Api) -> None:
    for number in range(5):
        await api.create(f"c{number}", labels={"a": "b"})
    listed = await api.call("GET", CONFIG_MAPS, query={"limit": 2})
    assert listed["metadata"]["remainingItemCount"] == 3
    listed = await api.call("GET", CONFIG_MAPS, query={"limit": 2, "labelSelector": "a=b"})
    assert "remainingItemCount" not in listed["metadata"]


@pytest.mark.spec("S-05", "S-04")
async def test_a_list_of_a_compacted_revision_is_gone(api: Api) -> None:
    for number in range(4):
        await api.create(f"c{number}")
    first = await api.call("GET", CONFIG_MAPS, query={"limit": 2})
    version = first["metadata"]["resourceVersion"]
    await api.create("z")
    api.server.store.compact(api.server.store.revision)
    query = {"limit": 2, "continue": first["metadata"]["continue"]}
    refused = await api.call("GET", CONFIG_MAPS, query=query, expect=410)
    assert refused["reason"] == "Expired"
    assert refused["message"].startswith("The provided continue parameter is too old")
    rest = await api.call("GET", CONFIG_MAPS, query={"continue": refused["metadata"]["continue"]})
    assert names(rest) == ["c2", "c3", "z"]
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    refused = await api.call("GET", CONFIG_MAPS, query=exact, expect=410)
    assert refused["message"] == "The resourceVersion for the provided list is too old."
    await api.call("GET", CONFIG_MAPS, query={"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"})


async def test_old_revisions_expire_when_the_history_is_full() -> None:
    async with ApiServer(config=Config(history=HistoryLimits(events=20))) as server:
        api = Api(server)
        first = await api.create("a")
        for number in range(30):
            await api.patch(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
        query = {"resourceVersion": first["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
        await api.call("GET", CONFIG_MAPS, query=query, expect=410)


@pytest.mark.virtual
@pytest.mark.spec("S-05")
async def test_a_list_waits_for_a_future_version_and_then_fails(api: Api) -> None:
    query = {"resourceVersion": str(api.server.store.revision + 1)}
    refused = await api.call("GET", CONFIG_MAPS, query=query, expect=504)
    assert refused["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert refused["details"]["retryAfterSeconds"] == 1


async def test_a_list_can_select_by_the_fields_of_its_kind(api: Api) -> None:
    await api.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
    await api.call("POST", "/api/v1/nodes", {"metadata": {"name": "n2"}})
    listed = await api.call("GET", "/api/v1/nodes", query={"fieldSelector": "spec.unschedulable=true"})
    assert names(listed) == ["n1"]
    await api.call("GET", "/api/v1/nodes", query={"fieldSelector": "spec.nothing=1"}, expect=400)
