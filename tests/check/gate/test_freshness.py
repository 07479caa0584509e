"""What must be fresh is fresh while a view is held, and what has expired stays so."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.gate.views import at_revision, may_be_old
from konverge.check.model import Gap, Plan
from konverge.wire.message import Request
from tests.check.gate.test_views import RECREATE, RESOURCE, STALE, moment
from tests.check.small import THINGS, Api, Caches, Small, create, run

STREAMED = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


@pytest.mark.spec("K-12")
def test_a_streamed_list_is_fresh_while_a_view_is_stale() -> None:
    read: list[Any] = []

    async def look(api: Api, caches: Caches) -> None:
        sizes = []
        async for event in api.lines(f"{THINGS}?{STREAMED}"):
            if event["type"] == "BOOKMARK":
                break
            sizes.append(event["object"]["spec"]["size"])
        read.append(([item["spec"]["size"] for item in caches[THINGS].values()], sizes))

    run(lambda: Small(look), RECREATE, Plan("stale", (STALE,)))
    assert ([1], [2]) in read


@pytest.mark.spec("K-14")
def test_a_watch_from_before_a_gap_is_refused() -> None:
    read: list[str] = []

    async def look(api: Api, caches: Caches) -> None:
        thing = caches[THINGS].get("a")
        if thing is None or thing["spec"]["size"] != 4:
            return
        created = int(thing["metadata"]["annotations"]["created"])
        async for event in api.lines(f"{THINGS}?watch=true&resourceVersion={created}"):
            read.append(f"{event['type']} {event['object'].get('code', '')}".strip())
            break

    async def noting(api: Api, caches: Caches) -> None:
        thing = caches[THINGS].get("a")
        if thing is not None and "annotations" not in thing["metadata"]:
            created = {"created": thing["metadata"]["resourceVersion"]}
            await api.patch(THINGS, "a", {"metadata": {"annotations": created}})
        await look(api, caches)

    steps = (create("create", size=3), create("down", size=1), create("up", size=3), create("on", size=4))
    gap = Gap(RESOURCE, moment("MODIFIED", "spec.size"), moment("MODIFIED", "spec.size", 2))
    run(lambda: Small(noting), steps)
    undisturbed, read[:] = list(read), []
    passed = run(lambda: Small(noting), steps, Plan("gap", (gap,)))
    assert not passed.missed
    assert undisturbed[0] == "MODIFIED"
    assert read[0] == "ERROR 410"


@pytest.mark.spec("K-12")
@pytest.mark.parametrize(
    ("query", "old"),
    [
        ("resourceVersion=0", True),
        ("resourceVersion=0&limit=500", True),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan", True),
        ("resourceVersion=0&continue=abc", False),
        ("resourceVersion=7", False),
        ("resourceVersion=7&resourceVersionMatch=NotOlderThan", False),
        ("limit=500", False),
        ("", False),
    ],
)
def test_only_lists_of_any_version_may_be_old(query: str, old: bool) -> None:
    assert may_be_old(Request("GET", f"{THINGS}?{query}")) is old


@pytest.mark.spec("K-12")
def test_an_old_list_is_whole_and_keeps_its_selectors() -> None:
    request = Request("GET", f"{THINGS}?labelSelector=a%3Db&limit=500&resourceVersion=0")
    assert at_revision(request, 42).target == (
        f"{THINGS}?labelSelector=a%3Db&resourceVersion=42&resourceVersionMatch=Exact"
    )
