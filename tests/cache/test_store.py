"""The store and its indexes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Key, receive
from konverge.cache.store import Store, by_label, by_owner


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
