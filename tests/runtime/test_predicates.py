"""Predicates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.objects.codec import from_json, to_json
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.runtime import (
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    not_,
    resource_version_changed,
)
from konverge.runtime.predicates import ChangePredicate, bind, created, deleted


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


# ------------------------------------------------------------------ predicates of objects


def of(data: str, version: int = 1) -> Record:
    obj = ConfigMap(metadata=ObjectMeta(name="a", resource_version=str(version)), data={"v": data})
    return Record(to_json(obj), version, "u", 1)


class Decoding:
    """Decodes ConfigMaps, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, raw: bytes) -> ConfigMap:
        self.count += 1
        return from_json(ConfigMap, raw)


def data_changed(old: ConfigMap | None, new: ConfigMap | None) -> bool:
    return old is None or new is None or old.data != new.data


@pytest.mark.spec("R-51")
def test_a_function_gets_the_objects_before_and_after() -> None:
    def note(old: ConfigMap | None, new: ConfigMap | None) -> bool:
        seen.append((old and old.data["v"], new and new.data["v"]))
        return True

    seen: list[Any] = []
    test = bind(note, Decoding())
    for states in ((None, of("1")), (of("1"), of("2")), (of("2"), None)):
        assert test(changed(*states)) is True
    assert seen == [(None, "1"), ("1", "2"), ("2", None)]


@pytest.mark.spec("R-51")
def test_built_in_predicates_decode_nothing_and_are_called_as_they_are() -> None:
    decoding = Decoding()
    alone = [generation_changed, resource_version_changed, labels_changed, annotations_changed, created, deleted]
    for predicate in (*alone, any_of(*alone), all_of(*alone), not_(any_of(labels_changed, created))):
        assert isinstance(predicate, ChangePredicate)
        assert bind(predicate, decoding) is predicate.function
        bind(predicate, decoding)(changed(of("1"), of("2", 2)))
    assert decoding.count == 0


@pytest.mark.spec("R-51")
def test_combinations_take_both_kinds_and_decode_only_where_they_must() -> None:
    decoding = Decoding()
    same, other = changed(of("1"), of("1", 2)), changed(of("1"), of("2", 2))
    both = bind(all_of(resource_version_changed, data_changed), decoding)
    assert (both(same), both(other)) == (False, True)
    either = bind(any_of(created, data_changed), decoding)
    assert (either(same), either(other), either(changed(None, of("1")))) == (False, True, True)
    neither = bind(not_(data_changed), decoding)
    assert (neither(same), neither(other)) == (True, False)
    nested = bind(all_of(any_of(created, not_(data_changed)), resource_version_changed), decoding)
    assert (nested(same), nested(other)) == (True, False)
    decoding.count = 0
    assert not bind(all_of(deleted, data_changed), decoding)(other)
    assert bind(any_of(resource_version_changed, data_changed), decoding)(other)
    assert decoding.count == 0


@pytest.mark.spec("R-52")
@pytest.mark.parametrize("wrong", [True, lambda: True, lambda a, b, c: True])
def test_a_part_of_a_combination_that_cannot_be_called_is_refused(wrong: Any) -> None:
    for combine in (all_of, any_of, not_):
        with pytest.raises(TypeError, match="write lambda old, new: "):
            combine(wrong)
    with pytest.raises(TypeError, match="a function of one Change"):
        ChangePredicate(lambda old, new: True)  # type: ignore[arg-type, misc]
