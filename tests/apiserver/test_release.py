"""What a definition was compiled to is given back in pieces, and given back at all."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from konverge.apiserver.crd.serving import kept_kinds, manager
from konverge.apiserver.crd.serving.strategy import CustomKind
from konverge.apiserver.release import release
from tests.apiserver.api import MERGE, Api
from tests.apiserver.definitions import DEFINITIONS, define
from tests.apiserver.held import Held, held, measured
from tests.apiserver.test_held_by_custom_resources import wide, with_spec

pytestmark = pytest.mark.spec("T-08")
PATH = f"{DEFINITIONS}/stacks.x.io"


class Part:
    """Refers to its parts in every way in which compiled schemas do."""

    def __init__(self, below: int, width: int) -> None:
        parts = [Part(below - 1, width) for _ in range(width)] if below else []
        self.members = {str(number): part for number, part in enumerate(parts)}
        self.check = lambda: parts


Part.__module__ = CustomKind.__module__


@pytest.mark.long
async def test_a_large_tree_is_freed_in_pieces(api: Api) -> None:
    roots: list[Any] = [Part(5, 11)]  # 177,000 parts, of seven objects each
    seen = weakref.ref(roots[0].check()[10].check()[10])
    _, probe = await measured(release(roots))
    assert roots == []
    assert seen() is None
    Held(await api.send("GET", "/version"), *probe).check()


async def test_what_others_refer_to_stays_whole() -> None:
    root = Part(2, 3)
    kept = root.members["1"]
    roots: list[Any] = [root]
    del root
    await release(roots)
    assert len(kept.check()) == 3
    assert all(part.members == {} for part in kept.check())


def compiled() -> list[weakref.ref[Any]]:
    return [weakref.ref(kind) for kind in gc.get_objects() if type(kind) is CustomKind]


async def until_freed(kinds: list[weakref.ref[Any]]) -> None:
    async with asyncio.timeout(60):
        while any(kind() is not None for kind in kinds):
            await asyncio.sleep(0.01)
            if not any(task.get_name().startswith("release") for task in asyncio.all_tasks()):
                gc.collect()  # which holds up everything as long as there is much


async def test_a_definition_that_changes_or_ends_leaves_nothing_behind(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_kinds, "LONGEST", 0)  # as if it were too large to be kept
    kept_kinds._kept.clear()
    gc.collect()
    await define(api, wide(600))
    first = compiled()
    assert first
    change = {"spec": {"versions": wide(601)["spec"]["versions"]}}
    await api.call("PATCH", PATH, change, content_type=MERGE)
    await until_freed(first)
    second = compiled()
    assert second
    await api.call("DELETE", PATH)
    await until_freed(second)


async def test_what_a_definition_is_still_served_by_is_not_released(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another place of its webhook leaves its versions as they were compiled."""
    monkeypatch.setattr(kept_kinds, "LONGEST", 0)
    monkeypatch.setattr(kept_kinds, "_kept", {})
    await define(api, wide(600))
    monkeypatch.setattr(manager, "release", lambda *_: pytest.fail("it is released"))
    first = compiled()
    names = {"spec": {"names": {"shortNames": ["st"]}}}
    await api.call("PATCH", PATH, names, content_type=MERGE)
    await until_served(api, "st")
    assert [kind() for kind in compiled()] == [kind() for kind in first]


async def until_served(api: Api, short: str) -> None:
    async with asyncio.timeout(60):
        while short not in str(await api.call("GET", "/apis/x.io/v1")):
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_a_deep_definition_is_deleted(api: Api) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        schema = {"type": "object", "properties": {"a": schema}}
    await define(api, with_spec({"type": "object", "properties": {f"p{number}": schema for number in range(1_700)}}))
    kinds = compiled()
    probe = await held(api, "DELETE", PATH)
    assert probe.response.status == 200
    probe.check()
    _, times = await measured(until_freed(kinds))
    Held(probe.response, *times).check()
    assert (await api.send("GET", PATH)).status == 404
