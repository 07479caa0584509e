"""Predicates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.runtime import (
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    not_,
    resource_version_changed,
)
from konverge.runtime.predicates import created, deleted


def record(version: int, generation: int = 1, uid: str = "u", **metadata: Any) -> Record:
    raw = json.dumps({"metadata": {"name": "a", "uid": uid, **metadata}}).encode()
    return Record(raw, version, uid, generation)


def changed(old: Record | None, new: Record | None) -> Change:
    kind = ChangeType.ADDED if old is None else ChangeType.DELETED if new is None else ChangeType.UPDATED
    return Change(kind, Key("", "a"), old, new)


@pytest.mark.spec("R-23")
def test_predicates_distinguish_changes() -> None:
    base = record(1)
    spec = changed(base, record(2, 2))
    status = changed(base, record(2))
    labels = changed(base, record(2, labels={"a": "1"}))
    notes = changed(base, record(2, annotations={"a": "1"}))
    resync = changed(base, base)
    replaced = changed(base, record(2, uid="another"))
    table = {
        generation_changed: [spec, replaced],
        labels_changed: [labels],
        annotations_changed: [notes],
        resource_version_changed: [spec, status, labels, notes, replaced],
        created: [],
        deleted: [],
        any_of(labels_changed, annotations_changed): [labels, notes],
        all_of(resource_version_changed, not_(generation_changed)): [status, labels, notes],
    }
    for predicate, passing in table.items():
        for change in (spec, status, labels, notes, resync, replaced):
            assert predicate(change) == (change in passing)
    changes = (generation_changed, labels_changed, annotations_changed, resource_version_changed)
    for whole in (changed(None, base), changed(base, None)):
        assert all(predicate(whole) for predicate in changes)
    assert (created(changed(None, base)), created(changed(base, None))) == (True, False)
    assert (deleted(changed(None, base)), deleted(changed(base, None))) == (False, True)
