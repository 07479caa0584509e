"""Changes of fields: accepted by the API server, one field each, and with a way back."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.check.inputs import Admission, ChangeOfInput, changes, fields, paths, values
from konverge.check.inputs.core_types import builtin
from konverge.check.inputs.scenarios import doubled
from konverge.check.inputs.values import smallest, string, word

from .test_fields import definition_of, sample_of


def changes_of(properties: dict[str, Any], spec: dict[str, Any], **more: Any) -> list[ChangeOfInput]:
    definition, sample = definition_of(properties), sample_of(spec)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] |= more
    admission = Admission(definition, "v1")
    assert admission.errors(sample) == []
    return [change for field in fields(definition, "v1", sample) for change in changes(field, sample, admission)]


def values_of(properties: dict[str, Any], spec: dict[str, Any], name: str, **more: Any) -> list[Any]:
    """The values of the one field, in turn, by the name of the change."""
    field = ("spec", *properties) if len(properties) == 1 else ("spec", next(iter(properties)))
    change = next(item for item in changes_of(properties, spec, **more) if item.name == name)
    return [paths.get(state, field) for state in change.states]


# ------------------------------------------------------------------ any schema

SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "enum": ["a", "b", "c"]},
        {"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"},
        {"type": "string", "format": "date-time"},
        {"type": "integer"},
        {"type": "integer", "minimum": 3, "maximum": 4},
        {"type": "integer", "minimum": 2, "exclusiveMinimum": True},
        {"type": "integer", "default": 7},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "boolean", "default": True},
        {"x-kubernetes-int-or-string": True},
    ]
)
NAMES = st.sampled_from(
    ["replicas", "storage", "image", "labels", "port", "mode", "name", "enabled", "secretName", "schedule", "timeout"]
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def made(properties: dict[str, dict[str, Any]], required: bool) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            **({"required": sorted(properties)[:1]} if required else {}),
        }

    return st.builds(made, st.dictionaries(NAMES, inner, min_size=1, max_size=4), st.booleans())


SCHEMAS = st.recursive(
    SCALARS
    | st.sampled_from([builtin("core", "Toleration"), builtin("core", "ResourceRequirements")]).map(copy.deepcopy),
    lambda inner: (
        _objects(inner)
        | inner.map(lambda item: {"type": "array", "items": item})
        | inner.map(lambda item: {"type": "object", "additionalProperties": item})
    ),
    max_leaves=8,
)


@pytest.mark.spec("K-21")
@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4), st.booleans())
def test_every_change_is_accepted_and_differs_and_has_a_way_back(schemas: dict[str, Any], filled: bool) -> None:
    definition = definition_of(schemas)
    spec = {name: smallest(schema, name) for name, schema in schemas.items()} if filled else {}
    sample = sample_of(spec)
    admission = Admission(definition, "v1")
    if admission.errors(sample):
        return
    for field in fields(definition, "v1", sample):
        for change in changes(field, sample, admission):
            last = sample
            for state in change.states:
                assert admission.errors(state, last) == []
                assert state != last
                assert state["metadata"] == sample["metadata"]
                last = state
            assert change.lasting or admission.errors(sample, last) == []
            assert paths.get(last, field.path) != paths.get(sample, field.path)
    assert sample == sample_of(spec)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, NAMES)
def test_the_smallest_value_is_one_that_the_schema_accepts(schema: dict[str, Any], name: str) -> None:
    assert Admission(definition_of({name: schema}), "v1").errors(sample_of({name: smallest(schema, name)})) == []


# ------------------------------------------------------------------ what users do

TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.spec("K-21")
@pytest.mark.parametrize(
    ("properties", "spec", "name", "expected"),
    [
        ({"replicas": {"type": "integer"}}, {"replicas": 3}, "scale up", [5]),
        ({"replicas": {"type": "integer"}}, {"replicas": 3}, "scale down", [1]),
        ({"replicas": {"type": "integer"}}, {"replicas": 2}, "scale to zero", [0]),
        ({"storage": {"type": "string"}}, {"storage": "10Gi"}, "grow", ["20Gi"]),
        ({"storage": {"type": "string"}}, {"storage": "10Gi"}, "shrink", ["5Gi"]),
        ({"labels": TEXTS}, {}, "add, change, remove", [{"label-a": "value-a"}, {"label-a": "value-b"}]),
        ({"labels": TEXTS}, {"labels": {"x": "1", "y": "2"}}, "remove", [{"y": "2"}]),
        ({"image": {"type": "string"}}, {"image": "nginx:1.27"}, "another image", ["nginx:image-b"]),
        ({"image": {"type": "string"}}, {"image": "h:5/nginx"}, "another image", ["h:5/nginx:b"]),
        ({"color": {"type": "string", "enum": ["r", "g", "b"]}}, {"color": "g"}, "in turn", ["r", "b"]),
        ({"on": {"type": "boolean"}}, {"on": True}, "off", [False]),
        ({"plugins": {"type": "array", "items": {"type": "string"}}}, {"plugins": ["a", "b"]}, "reorder", [["b", "a"]]),
        (
            {"plugins": {"type": "array", "items": {"type": "string"}}},
            {"plugins": ["a", "b"]},
            "remove an item",
            [["b"]],
        ),
        ({"dnsPolicy": {"type": "string"}}, {}, "another value", ["ClusterFirstWithHostNet"]),
        ({"dnsPolicy": {"type": "string"}}, {"dnsPolicy": "ClusterFirstWithHostNet"}, "another value", ["Default"]),
        ({"dnsPolicy": {"type": "string", "pattern": "^p"}}, {}, "another value", ["policy-b"]),
        ({"policy": {"type": "string"}}, {}, "another value", ["policy-b"]),
        (
            {"accessModes": {"type": "array", "items": {"type": "string"}}},
            {"accessModes": ["ReadWriteOnce"]},
            "append, replace, remove",
            [["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOnce", "ReadWriteMany"]],
        ),
        ({"weight": {"type": "integer", "maximum": 3}}, {"weight": 3}, "one less", [2]),
        ({"text": {"type": "string"}}, {"text": "a\nb\n"}, "one line more", ["a\nb\n# changed\n"]),
    ],
)
def test_what_is_done(properties: dict[str, Any], spec: dict[str, Any], name: str, expected: list[Any]) -> None:
    assert values_of(properties, spec, name) == expected


@pytest.mark.spec("K-21")
def test_a_value_beyond_the_bounds_is_not_sent() -> None:
    made = changes_of({"replicas": {"type": "integer", "minimum": 1, "maximum": 3}}, {"replicas": 3})
    assert [change.name for change in made] == ["scale down", "remove"]


@pytest.mark.spec("K-21")
def test_a_part_that_is_off_is_switched_on_first() -> None:
    part = {"type": "object", "properties": {"enabled": {"type": "boolean"}, "path": {"type": "string"}}}
    made = next(item for item in changes_of({"metrics": part}, {}) if item.field == "spec.metrics.path")
    assert made.about == ("spec.metrics.enabled", "spec.metrics.path")
    assert [state["spec"]["metrics"] for state in made.states] == [
        {"enabled": True},
        {"enabled": True, "path": "path-b"},
    ]


@pytest.mark.spec("K-21")
def test_what_a_rule_asks_for_is_added() -> None:
    rules = [{"rule": "!has(self.host) || has(self.mode)", "message": "a host needs a mode"}]
    more = {"x-kubernetes-validations": rules}
    properties = {"host": {"type": "string"}, "mode": {"type": "string", "enum": ["tcp", "udp"]}}
    made = [change for change in changes_of(properties, {}, **more) if change.field == "spec.host"]
    assert made
    assert all(change.states[-1]["spec"]["mode"] == "tcp" for change in made)


@pytest.mark.spec("K-21")
def test_a_field_that_cannot_be_taken_back_is_lasting() -> None:
    fixed = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "never less"}]}
    made = changes_of({"size": fixed}, {"size": 1})
    assert {(change.name, change.lasting) for change in made if change.name != "remove"} == {("scale up", True)}


@pytest.mark.spec("K-21")
def test_a_secret_that_is_named_is_made_as_well() -> None:
    made = changes_of({"secretName": {"type": "string"}}, {})
    other = next(change for change in made if change.name == "another Secret")
    assert [obj["metadata"]["name"] for obj in other.objects] == [other.states[0]["spec"]["secretName"]]
    missing = next(change for change in made if change.name == "a Secret that is missing")
    assert missing.bad
    assert missing.objects == ()


def test_words() -> None:
    assert word("tolerations") == "toleration"
    assert doubled("1.5Gi") == "3Gi"
    assert string({"type": "string", "pattern": "^v[0-9]{3}(alpha|beta)$"}, "tag") == "v000alpha"


@pytest.mark.spec("K-129")
@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("loadBalancerSourceRanges", ["10.1.0.0/16", "10.2.0.0/16"]),
        ("allowedCIDRs", ["10.1.0.0/16", "10.2.0.0/16"]),
        ("externalIPs", ["10.0.0.1", "10.0.0.2"]),
        ("nameservers", ["10.0.0.1", "10.0.0.2"]),
        ("zips", ["zip-a", "zip-b"]),
    ],
)
def test_a_list_of_networks_or_addresses_gets_such(name: str, items: list[str]) -> None:
    """An operator hands them on, and the API server refuses anything else: then the change would say nothing."""
    assert [values.item({"type": "string"}, name, number) for number in (1, 2)] == items
    assert values.item({"type": "string", "pattern": "^[a-z]+$"}, name, 1).isalpha()
