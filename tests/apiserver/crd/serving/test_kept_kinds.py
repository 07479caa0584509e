"""What versions of definitions are compiled to, shared by all who have the same text."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.crd.serving import kept_kinds
from konverge.apiserver.crd.serving.kept_kinds import kind_of
from konverge.apiserver.crd.serving.strategy import CustomKind
from tests.apiserver.api import Api
from tests.apiserver.definitions import define, definition

BOXES = "/apis/example.com/v1/namespaces/default/boxes"


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_kinds, "_kept", {})
    monkeypatch.setattr(kept_kinds, "_served", weakref.WeakValueDictionary())


def compiled(least: int = 1, *, name: str = "v1", kind: str = "Box", unknown: bool = False, **more: Any) -> CustomKind:
    schema = {"type": "object", "properties": {"size": {"type": "integer", "minimum": least}}}
    version = {"name": name, "schema": {"openAPIV3Schema": schema}, **more}
    spec = {"group": "example.com", "names": {"kind": kind}, "preserveUnknownFields": unknown, "versions": [version]}
    return kind_of({"spec": spec}, version)


def test_the_same_text_is_compiled_once() -> None:
    assert compiled() is compiled()
    assert compiled(served=True) is compiled(served=False), "which says nothing about objects"


@pytest.mark.parametrize(
    "other",
    [
        {"least": 2},
        {"name": "v2"},
        {"kind": "Crate"},
        {"unknown": True},
        {"subresources": {"status": {}}},
        {"selectableFields": [{"jsonPath": ".size"}]},
    ],
    ids=str,
)
def test_another_text_is_another_kind(other: dict[str, Any]) -> None:
    assert compiled(**other) is not compiled()


def test_a_long_text_is_kept_as_long_as_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_kinds, "LONGEST", 100)
    served = compiled()
    assert compiled() is served
    assert compiled(2) is not served
    ended = weakref.ref(served)
    del served
    gc.collect()
    assert ended() is None


def test_what_was_not_used_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = compiled(1), compiled(2)
    monkeypatch.setattr(kept_kinds, "MOST", sum(length for length, _ in kept_kinds._kept.values()))
    assert compiled(1) is first
    compiled(3)
    assert compiled(1) is first
    assert compiled(2) is not second


async def test_servers_that_share_a_kind_share_no_objects() -> None:
    sizes = {"type": "object", "properties": {"size": {"type": "integer", "default": 7}}}
    made = definition("boxes", "Box", schema=sizes)
    async with ApiServer() as one, ApiServer() as other:
        for server in (one, other):
            await define(Api(server), made)
        assert len(kept_kinds._kept) == 1
        await Api(one).call("POST", BOXES, {"metadata": {"name": "a"}})
        assert (await Api(one).call("GET", f"{BOXES}/a"))["size"] == 7
        assert (await Api(other).send("GET", f"{BOXES}/a")).status == 404
