"""Whether a desired object is already contained in the observed one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.runtime.containment import first_difference
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
        # quantities are compared as such, where they are quantities
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, {"f:limits": {"f:cpu": {}}}, ""),
        ({"metadata": {"name": "a", "labels": {"l": "1"}}}, {}, {"f:data": {"f:a": {}}}, ".metadata.labels"),
        ({"labels": {"cpu": "1000m"}}, {"labels": {"cpu": "1"}}, {"f:labels": {"f:cpu": {}}}, ".labels.cpu"),
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
