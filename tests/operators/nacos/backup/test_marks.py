"""Which restore left a database in half, by the statuses alone; and marks of those that go meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.client import NotFound
from konverge.objects import ObjectMeta, Status, from_dict, to_dict
from konverge.operators.nacos import names
from konverge.operators.nacos.backup.kinds import NacosRestore
from konverge.operators.nacos.backup.marks import half_restored, hand_back, mark_of, take_mark
from konverge.operators.nacos.resource import AnyNacos
from konverge.runtime import Request

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-84")]


def restore(name: str, phase: str = "Failed", minute: int = 0, *, touched: bool = True, going: bool = False) -> Any:
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
    meta.deletion_timestamp = "2026-01-01T01:00:00Z" if going else None
    time = f"2026-01-01T00:{minute:02}:00Z"
    status = {"phase": phase, "touched": touched, "completionTime": time}
    body = {"metadata": to_dict(meta), "spec": {"nacosRef": {"name": "nacos"}}, "status": status}
    return from_dict(NacosRestore, body)


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ([], ""),
        ([restore("a")], "a"),
        ([restore("a", touched=False)], ""),
        ([restore("a", "Running")], ""),
        ([restore("a", going=True)], ""),
        ([restore("a", minute=2), restore("b", minute=1)], "a"),
        ([restore("a", minute=1), restore("b", minute=2)], "b"),
        ([restore("a", minute=1), restore("b", "Completed", 2, touched=False)], ""),
        ([restore("a", minute=3), restore("b", "Completed", 2, touched=False)], "a"),
        ([restore("a", minute=1), restore("b", minute=2, touched=False)], "a"),
        ([restore("a", minute=1), restore("b", minute=2, going=True)], ""),
    ],
)
def test_the_last_that_changed_the_database(others: list[NacosRestore], name: str) -> None:
    found = half_restored(others)
    assert (found.metadata.name if found is not None else "") == name


class Client:
    """One Nacos, and the first restore as the API server has it."""

    def __init__(self, mark: str, first: NacosRestore | None) -> None:
        self.mark: str | None = mark
        self.first = first
        self.writes: list[str | None] = []

    async def get(self, kind: type[Any], name: str, namespace: str) -> Any:
        assert namespace == "default"
        if kind is NacosRestore:
            if self.first is None:
                raise NotFound(Status())
            return self.first
        annotations = {names.RESTORE: self.mark} if self.mark else {}
        return AnyNacos(metadata=ObjectMeta(name=name, namespace=namespace, annotations=annotations))

    async def patch(self, kind: type[Any], name: str, patch: Any, namespace: str) -> None:
        (self.mark,) = patch.body["metadata"]["annotations"].values()
        self.writes.append(self.mark)


@pytest.mark.parametrize(
    ("live", "left"),
    [
        (restore("first"), "first/uid-first"),
        (restore("first", going=True), None),
        (None, None),
        (restore("other"), None),
    ],
    ids=["there", "being deleted", "gone", "made again"],
)
async def test_a_mark_is_not_left_to_one_that_goes(live: NacosRestore | None, left: str | None) -> None:
    mine, first = restore("mine"), restore("first")
    client = Client(mark_of(mine), live)
    ctx: Any = SimpleNamespace(obj=mine, client=client, request=Request("default", "mine"))
    await hand_back(ctx, first)
    assert client.mark == left
    assert client.writes == [mark_of(first), None][: 1 if left else 2]


async def test_the_mark_of_another_restore_stays() -> None:
    client = Client("third/uid-third", None)
    ctx: Any = SimpleNamespace(obj=restore("mine"), client=client, request=Request("default", "mine"))
    await hand_back(ctx, restore("first"))
    assert client.writes == []


@pytest.mark.parametrize(
    ("present", "other", "writes"),
    [
        ("first/uid-first", restore("first"), ["touched", "mine/uid-mine"]),
        ("first/uid-first", restore("first", touched=False), ["mine/uid-mine"]),
        ("first/uid-old", restore("first"), ["mine/uid-mine"]),
        ("first/uid-first", None, ["mine/uid-mine"]),
        ("", restore(""), ["mine/uid-mine"]),
        ("mine/uid-mine", None, []),
    ],
    ids=["broke off", "changed nothing", "made again", "gone", "no mark", "ours"],
)
async def test_what_a_mark_stands_for_is_in_the_status_before_it_is_taken(
    present: str, other: NacosRestore | None, writes: list[str]
) -> None:
    mine = restore("mine", "Running", touched=False)
    mine.spec.overwrite = True
    client = Client(present, None)

    async def get(kind: type[Any], name: str) -> NacosRestore | None:
        assert (kind, name) == (NacosRestore, "first")
        return other

    async def save_status() -> None:
        client.writes.append("touched" if mine.status.touched else "untouched")

    ctx: Any = SimpleNamespace(obj=mine, client=client, get=get, save_status=save_status)
    nacos = await client.get(AnyNacos, "nacos", "default")
    await take_mark(ctx, nacos)
    assert client.writes == writes
