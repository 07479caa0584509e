"""The store and its indexes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Key, receive
from konverge.cache.store import SLICE, Change, ChangeType, Store, by_label, by_owner


def make(
    name: str, version: int, uid: str = "", *, labels: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    if labels:
        metadata["labels"] = labels
    return {"metadata": {**metadata, **more}, "data": {"v": str(version)}}


@pytest.mark.spec("R-10")
def test_an_index_follows_updates_and_an_unknown_one_is_an_error() -> None:
    store = Store({"owner": by_owner})
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "o-1", "controller": True}
    store.apply(*receive(json.dumps(make("a", 1, ownerReferences=[owner])).encode()))
    assert store.keys_by_index("owner", "o-1") == [Key("ns", "a")]
    store.add_index("label", by_label("x"))
    store.apply(*receive(json.dumps(make("a", 2, labels={"x": "1"})).encode()))
    assert store.keys_by_index("owner", "o-1") == []
    assert store.keys_by_index("label", "1") == [Key("ns", "a")]
    with pytest.raises(KeyError, match=r"no index 'nope' \(declared: label, owner\)"):
        store.keys_by_index("nope", "")


def put(store: Store, obj: dict[str, Any], *, initial: bool = False) -> Change | None:
    return store.apply(*receive(json.dumps(obj).encode()), initial=initial)


def in_namespace(namespace: str, name: str, version: int) -> dict[str, Any]:
    return make(name, version, namespace=namespace)


@pytest.mark.spec("R-08")
def test_each_step_says_what_changed() -> None:
    store = Store()
    added = put(store, make("a", 1), initial=True)
    assert added is not None
    assert (added.type, added.old, added.initial, added.listed) == (ChangeType.ADDED, None, True, False)
    updated = put(store, make("a", 2))
    assert updated is not None
    assert (updated.type, updated.old, updated.initial) == (ChangeType.UPDATED, added.new, False)
    assert updated.new == updated.latest == store.get(Key("ns", "a"))
    deleted = store.delete(Key("ns", "a"))
    assert deleted is not None
    assert (deleted.type, deleted.old, deleted.new) == (ChangeType.DELETED, updated.new, None)
    assert (deleted.latest, deleted.meta.name) == (updated.new, "a")
    assert (store.count, store.get(Key("ns", "a")), list(store.items())) == (0, None, [])
    assert store.delete(Key("ns", "a")) is None
    assert store.delete(Key("elsewhere", "a")) is None


@pytest.mark.spec("R-08")
def test_an_older_state_of_the_same_object_changes_nothing_and_another_object_always_does() -> None:
    store = Store()
    put(store, make("a", 5))
    assert put(store, make("a", 5)) is None
    assert put(store, make("a", 4)) is None
    assert put(store, make("a", 3, "another")) is not None, "the name was reused"
    assert put(store, make("a", 0, "another")) is not None, "a version that cannot be compared"
    assert store.count == 1


def test_the_metadata_of_a_change_is_the_same_after_it_was_delivered() -> None:
    change = put(Store(), make("a", 1, labels={"x": "1"}))
    assert change is not None
    before = change.meta
    assert change.meta is before, "decoded once while it is delivered"
    change.forget_meta()
    assert change.meta is not before
    assert (change.meta.name, change.meta.labels) == (before.name, before.labels) == ("a", {"x": "1"})


@pytest.mark.spec("R-10")
def test_objects_are_read_by_namespace_and_a_reader_may_change_the_store_meanwhile() -> None:
    store = Store()
    for namespace, name in (("x", "a"), ("y", "b"), ("x", "c")):
        put(store, in_namespace(namespace, name, 1))
    assert [key for key, _ in store.items("x")] == [Key("x", "a"), Key("x", "c")]
    assert list(store.items("z")) == []
    assert store.get(Key("y", "a")) is None
    for key, _ in store.items():
        store.delete(key)
    assert (store.count, list(store.items())) == (0, [])
    put(store, in_namespace("x", "a", 2))
    for key, _ in store.items("x"):
        store.delete(key)
    assert store.count == 0


@pytest.mark.spec("R-10")
def test_an_index_has_every_value_of_an_object_and_forgets_the_deleted() -> None:
    store = Store({"label": by_label("x")})
    owners = [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": uid} for uid in ("o-1", "o-2")]
    put(store, make("a", 1, labels={"x": "1"}, ownerReferences=owners))
    put(store, make("b", 1, labels={"x": "1"}, ownerReferences=owners[1:]))
    put(store, make("c", 1))
    store.add_index("owner", by_owner)
    a, b = Key("ns", "a"), Key("ns", "b")
    assert store.keys_by_index("owner", "o-1") == [a]
    assert store.keys_by_index("owner", "o-2") == store.keys_by_index("label", "1") == [a, b]
    put(store, make("a", 2, labels={"x": "1"}, ownerReferences=owners[:1]))
    assert store.keys_by_index("owner", "o-2") == [b]
    store.delete(a)
    assert (store.keys_by_index("owner", "o-1"), store.keys_by_index("label", "1")) == ([], [b])


@pytest.mark.spec("R-08")
def test_a_large_list_is_compared_in_slices_and_shows_nothing_before_it_is_complete() -> None:
    store = Store()
    for number in range(2 * SLICE):
        put(store, make(f"old-{number}", 1))
    kept = store.get(Key("ns", "old-0"))
    replacement = store.replacement()
    for name, version in [("old-0", 1), *((f"new-{number}", 2) for number in range(SLICE))]:
        key, record, _ = receive(json.dumps(make(name, version)).encode())
        replacement.add(key, record)
    assert store.count == 2 * SLICE
    slices = list(replacement.commit(77))
    assert max(map(len, slices)) <= SLICE
    changes = [change for changes in slices for change in changes]
    assert [change.type for change in changes] == [ChangeType.DELETED] * (2 * SLICE - 1) + [ChangeType.ADDED] * SLICE
    assert (store.count, store.version) == (SLICE + 1, 77)
    assert store.get(Key("ns", "old-0")) is kept, "an object that did not change is not kept twice"


@pytest.mark.spec("R-08")
def test_an_update_that_a_list_shows_says_that_states_between_may_be_unknown() -> None:
    store = Store({"label": by_label("x")})
    before = put(store, make("a", 5, labels={"x": "1"}))
    replacement = store.replacement()
    key, record, _ = receive(json.dumps(make("a", 9, labels={"x": "2"})).encode())
    replacement.add(key, record)
    ((change,),) = [changes for changes in replacement.commit(9) if changes]
    assert before is not None
    assert (change.type, change.old, change.new, change.listed) == (ChangeType.UPDATED, before.new, record, True)
    assert (store.keys_by_index("label", "1"), store.keys_by_index("label", "2")) == ([], [key])
    assert store.count == 1


@pytest.mark.spec("R-08")
@pytest.mark.parametrize("version", [5, 3])
def test_a_list_that_shows_another_state_at_the_same_or_an_older_version_counts(version: int) -> None:
    """A restored backup gives versions out again."""
    store = Store({"label": by_label("x")})
    put(store, make("a", 5, labels={"x": "1"}))
    replacement = store.replacement()
    key, record, _ = receive(json.dumps(make("a", version, labels={"x": "2"})).encode())
    replacement.add(key, record)
    ((change,),) = [changes for changes in replacement.commit(version) if changes]
    assert (change.type, change.new, store.get(key)) == (ChangeType.UPDATED, record, record)
    assert (store.keys_by_index("label", "1"), store.keys_by_index("label", "2")) == ([], [key])
    assert (store.count, store.version) == (1, version)


@pytest.mark.spec("R-10")
def test_what_is_not_there_cannot_be_deleted() -> None:
    store = Store()
    store.apply(*receive(json.dumps(make("a", 1)).encode()))
    assert store.delete(Key("ns", "b")) is None
    assert store.delete(Key("other", "a")) is None
    assert store.count == 1
    with pytest.raises(KeyError, match=r"declared: none"):
        store.keys_by_index("nope", "")
    assert store.delete(Key("ns", "a")) is not None
    assert (store.count, list(store.items())) == (0, [])
