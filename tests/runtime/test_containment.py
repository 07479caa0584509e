"""Whether a desired object is already contained in the observed one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects import ObjectMeta
from konverge.objects.codec import from_json
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.containment import first_difference, our_fields, plain
from konverge.runtime.server_additions import MOST, ServerAdditions
from tests.sizes import examples


def live(fields: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    entry = {"manager": "me", "operation": "Apply", "fieldsV1": fields}
    metadata = {"name": "a", "resourceVersion": "7", **({"managedFields": [entry]} if fields is not None else {})}
    return {"apiVersion": "v1", "kind": "X", "metadata": metadata, **more}


def desired(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "X", **({"metadata": {"name": "a"}} | more)}


pytestmark = pytest.mark.spec("R-25")


@pytest.mark.parametrize(
    ("wanted", "present", "fields", "differs"),
    [
        # never applied by us: the values decide
        ({"data": {"a": "1"}}, {"data": {"a": "1", "b": "2"}}, None, ""),
        ({"data": {"a": "1"}}, {"data": {"a": "2"}}, None, ".data.a"),
        ({"data": {"a": "1"}}, {}, None, ".data"),
        # applied: we must own what is desired, and desire what we own
        ({"data": {"a": "1"}}, {"data": {"a": "1", "b": "2"}}, {"f:data": {"f:a": {}}}, ""),
        ({"data": {"a": "1"}}, {"data": {"a": "1"}}, {"f:data": {"f:b": {}}}, ".data.a"),
        ({"data": {"a": "1"}}, {"data": {"a": "1", "b": "2"}}, {"f:data": {"f:a": {}, "f:b": {}}}, ".data.b"),
        # lists by key, with keys that the server defaults
        (
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 81, "protocol": "TCP"}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
            "",
        ),
        (
            {"ports": [{"port": 80}, {"port": 82}]},
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
            ".ports",
        ),
        (
            {"ports": []},
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
            '.ports[{"port":80,"protocol":"TCP"}]',
        ),
        # sets
        ({"items": ["b"]}, {"items": ["a", "b"]}, {"f:items": {'v:"b"': {}}}, ""),
        ({"items": ["c"]}, {"items": ["a", "b"]}, {"f:items": {'v:"b"': {}}}, ".items"),
        # atomic maps and lists: ours as a whole
        ({"selector": {"app": "x"}}, {"selector": {"app": "x"}}, {"f:selector": {}}, ""),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}, {"f:args": {}}, ".args[0]"),
        # and what is in them that is not desired was ours, and has to go
        ({"selector": {"app": "x"}}, {"selector": {"app": "x", "old": "y"}}, {"f:selector": {}}, ".selector.old"),
        ({"rules": [{"a": 1}]}, {"rules": [{"a": 1, "old": 2}]}, {"f:rules": {}}, ".rules[0].old"),
        ({"rules": [{"a": {"b": 1}}]}, {"rules": [{"a": {"b": 1, "old": 2}}]}, {"f:rules": {}}, ".rules[0].a.old"),
        ({"rules": [{"a": None}]}, {"rules": [{"a": 1}]}, {"f:rules": {}}, ".rules[0].a"),
        ({"rules": [{"a": 1, "b": None}]}, {"rules": [{"a": 1}]}, {"f:rules": {}}, ""),
        ({"rules": [{"a": 1}]}, {"rules": [{"a": 1, "others": 2}]}, None, ""),
        ({"rules": [{"limits": {"cpu": "1000m"}}]}, {"rules": [{"limits": {"cpu": "1"}}]}, {"f:rules": {}}, ""),
        (
            {"rules": [{"limits": {"cpu": "1000m", "memory": "2"}}]},
            {"rules": [{"limits": {"cpu": "1", "memory": "3"}}]},
            {"f:rules": {}},
            ".rules[0].limits.memory",
        ),
        (
            {"rules": [{"labels": {"cpu": "1000m"}}]},
            {"rules": [{"labels": {"cpu": "1"}}]},
            {"f:rules": {}},
            ".rules[0].labels.cpu",
        ),
        # quantities are compared as such, where they are quantities
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, {"f:limits": {"f:cpu": {}}}, ""),
        ({"metadata": {"name": "a", "labels": {"l": "1"}}}, {}, {"f:data": {"f:a": {}}}, ".metadata.labels"),
        ({"labels": {"cpu": "1000m"}}, {"labels": {"cpu": "1"}}, {"f:labels": {"f:cpu": {}}}, ".labels.cpu"),
        ({"limits": {"a.dev/x": "1000m"}}, {"limits": {"a.dev/x": "1"}}, {"f:limits": {"f:a.dev/x": {}}}, ""),
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "2"}}, {"f:limits": {"f:cpu": {}}}, ".limits.cpu"),
        ({"limits": {"cpu": "many"}}, {"limits": {"cpu": "2"}}, None, ".limits.cpu"),
        ({"limits": {"cpu": {"a": 1}}}, {"limits": {"cpu": "2"}}, None, ".limits.cpu"),
        # what identifies the object, and what the server writes, is never compared
        ({"kind": "Y", "metadata": {"name": "b", "uid": "u", "generation": 3}}, {}, None, ""),
        ({"metadata": {"name": "a"}}, {}, {"f:data": {"f:a": {}}}, ".data"),
        ({"metadata": {"name": "a"}}, {}, {}, ""),
        ({"spec": {"name": "a"}}, {"spec": {"name": "b"}}, None, ".spec.name"),
        ({"spec": {"metadata": {"x": "1"}}}, {"spec": {"metadata": {"x": "1"}}}, {"f:spec": {}}, ""),
        (
            {"spec": {"metadata": {"x": "1"}}},
            {"spec": {"metadata": {"x": "1"}}},
            {"f:spec": {"f:other": {}}},
            ".spec.metadata",
        ),
        ({"data": {"a": "1"}}, {"data": {"a": "1"}}, {"f:other": {}}, ".data"),
        (
            {"metadata": {"name": "a", "labels": {"l": "1"}}},
            {"metadata": {"name": "a", "labels": {"l": "1", "m": "2"}}},
            None,
            "",
        ),
        ({"limits": {"cpu": "1000m", "memory": "2"}}, {"limits": {"cpu": "1", "memory": "3"}}, None, ".limits.memory"),
        # nothing is desired: that is the same as leaving it out
        ({"data": None}, {"data": {"a": "1"}}, None, ""),
        ({"data": None}, {"data": {"a": "1"}}, {"f:data": {"f:a": {}}}, ".data"),
        ({"data": {"a": None}}, {"data": {"b": "1"}}, None, ""),
        # other types
        ({"args": ["a"]}, {"args": "a"}, None, ".args"),
        ({"args": "a"}, {"args": ["a"]}, None, ".args"),
        ({"data": "a"}, {"data": {"a": "1"}}, None, ".data"),
        ({"args": ("a", "b")}, {"args": ["a", "b"]}, None, ""),
        ({"data": {"a": "1"}}, {"data": ["a"]}, None, ".data"),
        ({"args": ["a"]}, {"args": ["a", "b"]}, None, ".args"),
        ({"args": ["a", "b"]}, {"args": ["a"]}, None, ".args"),
        ({"l": [{"a": 1}, {"b": 2}]}, {"l": [{"a": 1, "x": 1}, {"b": 3}]}, None, ".l[1].b"),
        # sets: all of ours, and none that is no longer desired
        ({"items": ["a", "b"]}, {"items": ["a", "b"]}, {"f:items": {'v:"a"': {}}}, ".items"),
        ({"items": ["a"]}, {"items": ["a", "b"]}, {"f:items": {'v:"a"': {}, 'v:"b"': {}}}, ".items"),
        ({"items": ["b", "a"]}, {"items": ["a", "b"]}, {"f:items": {'v:"a"': {}, 'v:"b"': {}, ".": {}}}, ""),
        ({"items": ["a"]}, {"items": []}, {"f:items": {'v:"a"': {}}}, ".items"),
        # by key: all of them, another manager removed it, changed it, or it holds something else
        ({"l": [{"k": 1}]}, {"l": [{"k": 2}]}, {"f:l": {'k:{"k":1}': {"f:k": {}}}}, '.l[{"k":1}]'),
        (
            {"l": [{"k": 1, "v": 1}]},
            {"l": [{"k": 1, "v": 2}]},
            {"f:l": {'k:{"k":1}': {"f:k": {}, "f:v": {}}}},
            '.l[{"k":1}].v',
        ),
        (
            {"l": [{"k": 1, "p": "UDP"}]},
            {"l": [{"k": 1, "p": "TCP"}, {"k": 1, "p": "UDP"}]},
            {"f:l": {'k:{"k":1,"p":"UDP"}': {"f:k": {}, "f:p": {}}}},
            "",
        ),
        # one that leaves out a key that the server defaults, before and after one that does not
        *(
            (
                {"l": [{"k": 1}, {"k": 1, "p": "SCTP"}][::step]},
                {"l": [{"k": 1, "p": "TCP"}, {"k": 1, "p": "SCTP"}]},
                {"f:l": {'k:{"k":1,"p":"SCTP"}': {"f:k": {}, "f:p": {}}, 'k:{"k":1,"p":"TCP"}': {"f:k": {}}}},
                "",
            )
            for step in (1, -1)
        ),
        ({"l": ["k"]}, {"l": ["k"]}, {"f:l": {'k:{"k":1}': {"f:k": {}}}}, '.l[{"k":1}]'),
        (
            {"l": [{"k": 2}, {"k": 1}]},
            {"l": [{"k": 1}, {"k": 2}]},
            {"f:l": {'k:{"k":1}': {"f:k": {}}, 'k:{"k":2}': {"f:k": {}}, ".": {}}},
            "",
        ),
    ],
)
def test_the_first_difference_is_reported_by_its_path(
    wanted: dict[str, Any], present: dict[str, Any], fields: dict[str, Any] | None, differs: str
) -> None:
    assert first_difference(desired(**wanted), live(fields, **present), "me") == differs


maps = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)


@settings(max_examples=examples(2))
@given(maps, maps, maps)
def test_an_apply_is_skipped_only_when_it_would_change_nothing(
    wanted: dict[str, str], present: dict[str, str], owned: dict[str, str]
) -> None:
    """For plain maps this is easy to compute: an apply would change neither the object nor what we own."""
    fields = {"f:data": {f"f:{name}": {} for name in owned}} if owned else {}
    difference = first_difference(desired(data=wanted), live(fields, data=present), "me")
    after = {name: value for name, value in present.items() if name not in owned} | wanted
    would_change = after != present or (bool(fields) and set(owned) != set(wanted))
    assert bool(difference) == would_change


def managed(**entry: Any) -> dict[str, Any]:
    return {"manager": "me", "operation": "Apply", "fieldsV1": {"f:a": {}}, **entry}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        ([], None),
        ([managed()], {"f:a": {}}),
        ([managed(manager="another")], None),
        ([managed(operation="Update")], None),
        ([managed(subresource="status")], None),
        ([managed(subresource="status", fieldsV1={"f:b": {}}), managed()], {"f:a": {}}),
        ([managed(manager="another", fieldsV1={"f:b": {}}), managed()], {"f:a": {}}),
        ([{"manager": "me", "operation": "Apply"}], {}),
    ],
)
def test_what_we_own_is_our_apply_to_the_object_itself(entries: list[Any], ours: dict[str, Any] | None) -> None:
    assert our_fields({"metadata": {"managedFields": entries}}, "me") == ours


def test_an_object_without_metadata_has_no_managers() -> None:
    assert our_fields({}, "me") is None
    assert our_fields({"metadata": {}}, "me") is None


def test_a_desired_object_as_plain_data_has_no_empty_status() -> None:
    made = Deployment(metadata=ObjectMeta(name="a", labels={"b": "c"}))
    assert plain(made)["metadata"] == {"name": "a", "labels": {"b": "c"}}
    assert "status" not in plain(made)
    made.status.replicas = 3
    assert plain(made)["status"] == {"replicas": 3}


def test_our_labels_are_compared_with_what_we_own() -> None:
    ours = desired(metadata={"name": "a", "labels": {"l": "1"}})
    theirs = live({"f:metadata": {"f:labels": {"f:l": {}}}})
    theirs["metadata"]["labels"] = {"l": "1", "other": "2"}
    assert first_difference(ours, theirs, "me") == ""
    theirs["metadata"]["labels"]["l"] = "2"
    assert first_difference(ours, theirs, "me") == ".metadata.labels.l"


def test_an_object_that_was_read_is_plain_data_with_its_managers() -> None:
    read = from_json(
        ConfigMap, b'{"metadata": {"name": "a", "managedFields": [{"manager": "me"}]}, "data": {"a": "1"}}'
    )
    data = plain(read)
    assert data["data"] == {"a": "1"}
    assert data["metadata"]["managedFields"] == [{"manager": "me"}]


def test_what_the_server_adds_is_no_difference_once_it_is_known() -> None:
    known = ServerAdditions()
    wanted, present = desired(rules=[{"a": 1}, {"a": 2}]), live({"f:rules": {}}, rules=[{"a": 1, "b": 7}, {"a": 2}])
    added = partial(known.has, "kind")
    assert first_difference(wanted, present, "me", added) == ".rules[0].b"
    known.add("kind", ".rules[1].b", 7)  # in any item
    assert first_difference(wanted, present, "me", added) == ""
    assert first_difference(wanted, present, "me", partial(known.has, "another kind")) == ".rules[0].b"
    other = live({"f:rules": {}}, rules=[{"a": 1, "b": 8}, {"a": 2}])
    assert first_difference(wanted, other, "me", added) == ".rules[0].b"


def test_additions_are_bounded() -> None:
    known = ServerAdditions()
    for number in range(MOST + 1):
        known.add("kind", ".a", number)
    assert known.has("kind", ".a", MOST)
    assert not known.has("kind", ".a", 0)


def test_what_every_server_adds_to_claim_templates_is_known_from_the_start() -> None:
    known = ServerAdditions()
    assert known.has("StatefulSet", ".spec.volumeClaimTemplates[0].status.phase", "Pending")
    assert not known.has("StatefulSet", ".spec.volumeClaimTemplates[0].status.phase", "Bound")
    assert not known.has("StatefulSet", ".spec.volumeClaimTemplates[0].spec.accessModes", ["ReadWriteOnce"])
