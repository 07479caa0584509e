"""managedFields stay JSON until they are read, which cannot be seen from outside."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from types import MappingProxyType
from typing import Any

import pytest

from konverge.objects.codec import from_dict, from_json, to_dict, to_json
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ManagedFieldsEntry, ObjectMeta, detach

ENTRIES = [
    {"manager": "one", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
    {"manager": "two", "operation": "Update", "subresource": "status", "time": "2026-01-02T03:04:05Z"},
]
WIRE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "managedFields": ENTRIES},
    "data": {"a": "b"},
}


def test_they_are_read_at_a_look() -> None:
    meta = from_dict(ConfigMap, WIRE).metadata
    first, second = meta.managed_fields
    assert (first.manager, first.fields_v1) == ("one", {"f:data": {"f:a": {}}})
    assert (second.subresource, second.time) == ("status", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("value", [None, []])
def test_none_are_none(value: object) -> None:
    assert ObjectMeta().managed_fields == ()
    assert from_dict(ObjectMeta, {"managedFields": value}).managed_fields == ()


def test_they_round_trip_and_compare() -> None:
    config_map, other = from_json(ConfigMap, json.dumps(WIRE)), from_json(ConfigMap, json.dumps(WIRE))
    assert config_map == other
    assert json.loads(to_json(config_map)) == to_dict(config_map) == WIRE
    other.metadata.managed_fields = other.metadata.managed_fields[:1]
    assert config_map != other
    assert to_dict(other)["metadata"]["managedFields"] == ENTRIES[:1]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_copies_are_sent_like_the_original(duplicate: Any) -> None:
    for obj in (from_dict(ConfigMap, WIRE), ConfigMap(metadata=ObjectMeta(name="b"))):
        assert duplicate(obj) == obj
        assert to_json(duplicate(obj)) == to_json(obj)


def test_they_are_assigned() -> None:
    meta = ObjectMeta(name="a")
    meta.managed_fields = [ManagedFieldsEntry(manager="m", fields_v1={"f:x": {}})]
    assert to_dict(meta) == {"name": "a", "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}}]}
    meta.managed_fields = ()
    assert to_dict(meta) == {"name": "a"}


def test_a_detached_object_does_not_hold_its_message() -> None:
    message = bytearray(json.dumps(WIRE).encode())
    obj = from_json(ConfigMap, message)
    with pytest.raises(BufferError):
        message.clear()
    detach([obj, ConfigMap()])
    message.clear()
    assert [entry.manager for entry in obj.metadata.managed_fields] == ["one", "two"]


def test_other_mappings_are_plain_data_too() -> None:
    assert from_dict(ConfigMap, MappingProxyType({**WIRE, "data": MappingProxyType({"a": "b"})})).data == {"a": "b"}


def test_the_collector_has_nothing_to_do_with_models() -> None:
    obj = from_dict(ConfigMap, WIRE)
    assert not gc.is_tracked(obj)
    assert not gc.is_tracked(obj.metadata)
