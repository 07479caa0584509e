"""Tables: order of keys, history, scopes of watchers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.storage import Event, Store, Table

NAMES = st.text("ab-./", min_size=1, max_size=4).filter(lambda text: "/" not in text)


def obj(name: str, namespace: str = "ns", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


@given(st.lists(st.tuples(NAMES, NAMES), unique=True, max_size=40), st.integers(0, 40))
def test_keys_are_in_the_order_of_whole_keys(pairs: list[tuple[str, str]], listed_after: int) -> None:
    store = Store()
    table = store.table("t")
    for index, (namespace, name) in enumerate(pairs):
        store.put(table, obj(name, namespace), expected=0)
        if index == listed_after:
            table.keys()
    assert table.keys() == sorted(f"{namespace}/{name}" for namespace, name in pairs)
    for namespace in {namespace for namespace, _ in pairs}:
        assert table.keys(f"{namespace}/") == sorted(f"{namespace}/{name}" for n, name in pairs if n == namespace)


def test_keys_continue_after_a_key() -> None:
    store = Store()
    table = store.table("t")
    for name in "cab":
        store.put(table, obj(name), expected=0)
    assert table.keys("ns/", "ns/a\0") == ["ns/b", "ns/c"]
    store.remove(table, "ns/b", expected=None)
    assert table.keys("ns/") == ["ns/a", "ns/c"]


OPERATIONS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["put", "remove"])), max_size=40)


@pytest.mark.spec("S-05")
@given(OPERATIONS)
def test_every_old_state_can_be_reconstructed(operations: list[tuple[str, str]]) -> None:
    store = Store()
    table = store.table("t")
    states = {store.revision: dict(table.records)}
    for name, what in operations:
        if what == "put":
            store.put(table, obj(name), expected=None)
        elif f"ns/{name}" in table.records:
            store.remove(table, f"ns/{name}", expected=None)
        states[store.revision] = dict(table.records)
    for revision, state in states.items():
        old_state = {**table.records, **table.undone(revision)}
        assert {key: record for key, record in old_state.items() if record is not None} == state


class Seen:
    def __init__(self) -> None:
        self.keys: list[str] = []

    def deliver(self, event: Event) -> None:
        self.keys.append(event.key)


def test_watchers_are_notified_of_their_scope_only() -> None:
    store = Store()
    table = store.table("t")
    scopes = {"": Seen(), "a/": Seen(), "a/x": Seen()}
    stops = [table.watch(scope, seen) for scope, seen in scopes.items()]
    for namespace, name in (("a", "x"), ("a", "y"), ("b", "x")):
        store.put(table, obj(name, namespace), expected=0)
    assert scopes[""].keys == ["a/x", "a/y", "b/x"]
    assert scopes["a/"].keys == ["a/x", "a/y"]
    assert scopes["a/x"].keys == ["a/x"]
    for stop in stops:
        stop()
        stop()
    assert table.watchers == {}


def test_frames_are_kept_during_delivery_only() -> None:
    shared: list[int] = []

    class Framing:
        def deliver(self, event: Event) -> None:
            assert event.frames is not None
            event.frames.setdefault("form", b"x")
            shared.append(id(event.frames))

    table = Table("t")
    store = Store()
    store.tables["t"] = table
    for _ in range(2):
        table.watch("", Framing())
    store.put(table, obj("a"), expected=0)
    assert len(set(shared)) == 1
    assert table.events[-1].frames is None
