"""Why a reconcile runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.runtime import Changed, Retry, Timer
from konverge.runtime.reasons import changed_fields

pytestmark = pytest.mark.spec("R-12")


def record(version: int, **content: Any) -> Record:
    metadata = {"name": "a", "resourceVersion": str(version)}
    return Record(json.dumps({"metadata": metadata, **content}).encode(), version, "u", 0)


def changed(version: int = 2, kind: str = "Pod", name: str = "a", type: ChangeType = ChangeType.UPDATED) -> Changed:
    return Changed(kind, Change(type, Key("ns", name), record(1), record(version)))


def test_a_reason_names_the_attempt_or_the_time() -> None:
    assert str(Retry(2, "timed out")) == "retry 2 after: timed out"
    assert str(Retry(2)) == "retry 2"
    assert str(Timer(1.5)) == "asked to come back after 1.5 s"


def test_the_same_change_is_one_reason() -> None:
    assert changed() == changed()
    assert hash(changed()) == hash(changed())
    others = [changed(3), changed(kind="Node"), changed(name="b"), changed(type=ChangeType.ADDED), Retry(1)]
    assert not any(changed() == other for other in others)
    assert len({changed(), changed(), *others}) == 6
    assert len({hash(reason) for reason in (changed(), changed(3), changed(kind="Node"), changed(name="b"))}) == 4


def test_a_change_names_its_fields_and_an_arrival_none() -> None:
    old, new = record(1, spec={"replicas": 1}), record(2, spec={"replicas": 2})
    assert Changed("Web", Change(ChangeType.UPDATED, Key("", "a"), old, new)).fields == ["spec.replicas"]
    assert Changed("Web", Change(ChangeType.ADDED, Key("", "a"), None, new)).fields == []
    assert Changed("Web", Change(ChangeType.DELETED, Key("", "a"), old, None)).fields == []


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 2, "c": 3}, ["a", "b", "c"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c"]),
        ({"a": {"b": 1}}, {"a": [1]}, ["a"]),
        ({"a": [1]}, {"a": {"b": 1}}, ["a"]),
        ({"a": [1, 2, 3]}, {"a": [1, 5, 6]}, ["a[1]", "a[2]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a[0].b"]),
        ({"a": [1]}, {"a": 1}, ["a"]),
        (
            {"metadata": {"resourceVersion": "1", "managedFields": [1], "labels": {"a": "b"}}},
            {"metadata": {"resourceVersion": "2", "managedFields": [], "labels": {}}},
            ["metadata.labels.a"],
        ),
        ({"spec": {"resourceVersion": "1"}}, {"spec": {"resourceVersion": "2"}}, ["spec.resourceVersion"]),
    ],
)
def test_changed_fields(old: Any, new: Any, paths: list[str]) -> None:
    assert changed_fields(old, new) == paths
