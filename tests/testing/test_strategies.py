"""Strategies for custom resources: the API server accepts every object that is drawn, and they reach everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from konverge.client import Client, DryRun
from konverge.objects import CustomResource, crd, crd_dict
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.resource import Resource
from konverge.operators.nacos.resource import Nacos
from konverge.operators.webapp import WebApp
from konverge.operators.wukong.resource import Wukong
from konverge.sim import Cluster
from konverge.testing import eventually, strategies
from konverge.testing.operators import install_definitions
from tests.objects import zoo

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def drawn(strategy: SearchStrategy[Any], count: int = 60, *, strict: bool = True) -> list[Any]:
    """Examples of a strategy. `strict`: Hypothesis objects when more than a few are rejected."""
    examples: list[Any] = []
    suppressed = SLOW if strict else [*SLOW, HealthCheck.filter_too_much]

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=suppressed, database=None)
    @given(example=strategy)
    def collect(example: Any) -> None:
        examples.append(example)

    collect()
    return examples


@pytest.mark.spec("O-51")
@pytest.mark.virtual
@pytest.mark.hypothesis  # the long suite draws more
@pytest.mark.blocking("Hypothesis draws on the loop")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (zoo.WebApp, {}),
        (zoo.Animal, {"name": "a1"}),
        (zoo.Cage, {}),
        (WebApp, {}),
        (Nacos, {}),
        (Wukong, {}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
async def test_the_server_accepts_every_object_of_a_class(
    kind: type[CustomResource[Any, Any]], options: dict[str, Any]
) -> None:
    examples = settings.default.max_examples
    objects = drawn(strategies.objects(kind, **options), examples // 5 if kind is Wukong else examples)
    async with Cluster(controllers=False, scheduler=False, kubelet=False) as cluster:
        await install_definitions(cluster.client, [kind])
        for obj in objects:
            stored = await DryRun(cluster.client).create(obj)
            assert isinstance(stored, kind)
    texts = {str(to_dict(obj)["spec"]) for obj in objects}
    assert len(texts) > len(objects) // 4, "they differ"


def definition(schema: dict[str, Any], number: int = 0, **version: Any) -> dict[str, Any]:
    names = {
        "plural": f"things{number}",
        "singular": f"thing{number}",
        "kind": f"Thing{number}",
        "listKind": f"Thing{number}List",
    }
    whole = {"type": "object", "properties": {"spec": schema}, "required": ["spec"]}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}, **version},
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{number}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


def specs(schema: dict[str, Any], **options: Any) -> SearchStrategy[Any]:
    return strategies.objects_of_crd(definition(schema), **options).map(lambda obj: obj["spec"])


# ------------------------------------------------------------------ definitions that are drawn, too


def limited(draw: st.DrawFn, *names: str, low: int, high: int) -> dict[str, int]:
    """Some limits of a pair, the lower one first."""
    numbers = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=2)))
    return {name: number for name, number in zip(names, numbers, strict=True) if draw(st.booleans())}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    kind = draw(st.sampled_from(("string", "integer", "number", "boolean", "either", "array", "map", "object")))
    if depth == 0 and kind in ("array", "map", "object"):
        kind = "string"
    match kind:
        case "string":
            forms = ("", "date-time", "date", "duration", "byte", "ipv4", "ipv6", "cidr", "uuid", "uri", "email", "x")
            more = draw(st.sampled_from(("length", "pattern", "format", "enum")))
            if more == "format":
                return {"type": "string", "format": draw(st.sampled_from(forms))}
            if more == "pattern":
                return {"type": "string", "pattern": draw(st.sampled_from((r"^[a-z]+\d?$", "b", r"^(a|bc){2,3}$")))}
            if more == "enum":
                return {"type": "string", "enum": draw(st.sampled_from((["a"], ["a", "b", ""])))}
            return {"type": "string", **limited(draw, "minLength", "maxLength", low=0, high=30)}
        case "integer":
            limits = limited(draw, "minimum", "maximum", low=-100, high=100)
            form = {"format": draw(st.sampled_from(("int32", "int64")))} if draw(st.booleans()) else {}
            return {"type": "integer", "nullable": draw(st.booleans()), **limits, **form}
        case "number":
            return {"type": "number", **limited(draw, "minimum", "maximum", low=-100, high=100)}
        case "either":
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        case "array":
            items = draw(schemas(depth - 1))
            limits = limited(draw, "minItems", "maxItems", low=0, high=4) if items.get("type") != "boolean" else {}
            return {"type": "array", "items": items, **limits} if "type" in items else {"type": "array", "items": items}
        case "map":
            limits = limited(draw, "minProperties", "maxProperties", low=0, high=4)
            return {"type": "object", "additionalProperties": draw(schemas(depth - 1)), **limits}
        case "object":
            names = draw(st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
            required = [name for name in names if draw(st.booleans())]
            properties = {name: draw(schemas(depth - 1)) for name in names}
            return {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return {"type": "boolean"}


@pytest.mark.spec("O-51")
@pytest.mark.virtual
@pytest.mark.blocking("Hypothesis draws on the loop")
async def test_the_server_accepts_every_object_of_a_drawn_definition() -> None:
    @st.composite
    def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
        schema = draw(schemas().filter(lambda schema: "items" not in schema or "type" in schema["items"]))
        objects = strategies.objects_of_crd(definition(schema))
        return schema, [draw(objects) for _ in range(3)]

    async with Cluster(controllers=False, scheduler=False, kubelet=False) as cluster:
        for number, (schema, objects) in enumerate(drawn(pairs(), 30)):
            await install(cluster.client, definition(schema, number))
            resource = Resource("example.com", "v1", f"Thing{number}", f"things{number}")
            for obj in objects:
                await create(cluster.client, {**obj, "kind": resource.kind}, resource)


async def install(client: Client, plain: dict[str, Any]) -> None:
    await client.create(from_dict(CustomResourceDefinition, plain))

    async def established() -> bool:
        conditions = (await client.get(CustomResourceDefinition, plain["metadata"]["name"])).status.conditions
        assert any(condition.type == "Established" and condition.status == "True" for condition in conditions), (
            conditions
        )
        return True

    await eventually(established)


async def create(client: Client, obj: dict[str, Any], resource: Resource) -> None:
    await DryRun(client).create(obj, resource=resource)


# ------------------------------------------------------------------ what a schema can say

PORTS = {
    "type": "array",
    "minItems": 1,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {
            "port": {"type": "integer", "minimum": 1, "maximum": 3},
            "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
        },
    },
}
RANGE = {
    "type": "object",
    "required": ["low", "high"],
    "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
    "x-kubernetes-validations": [{"rule": "self.low < self.high"}],
}
EXCLUSIVE = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    "not": {"required": ["c"]},
}
EXACTLY_ONE = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    "x-kubernetes-validations": [{"rule": "has(self.a) != has(self.b)"}],
}


def keys(value: list[dict[str, Any]]) -> set[tuple[int, str]]:
    return {(item["port"], item.get("protocol", "TCP")) for item in value}


CASES: dict[str, tuple[dict[str, Any], Callable[[Any], bool], Callable[[Any], bool]]] = {
    # what always holds, and what some of them reach
    "enum": ({"type": "string", "enum": ["a", "b"]}, lambda v: v in "ab", lambda v: v == "b"),
    "exclusive": (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 4, "exclusiveMaximum": True},
        lambda v: v in (2, 3),
        lambda v: v == 3,
    ),
    "multiple": (
        {"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 16},
        lambda v: v in (5, 10, 15),
        lambda v: v == 15,
    ),
    "steps": (
        {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 1},
        lambda v: v * 4 == int(v * 4),
        lambda v: v == 0.75,
    ),
    "length": ({"type": "string", "minLength": 40}, lambda v: len(v) >= 40, lambda v: len(v) > 40),
    "pattern": ({"type": "string", "pattern": "^[a-c]+$", "maxLength": 4}, str.islower, lambda v: len(v) > 1),
    "pattern inside": ({"type": "string", "pattern": "x"}, lambda v: "x" in v, lambda v: v != "x"),
    "nullable": ({"type": "integer", "nullable": True}, lambda v: True, lambda v: v is None),
    "either": (
        {"x-kubernetes-int-or-string": True},
        lambda v: isinstance(v, int | str),
        lambda v: isinstance(v, str) and v.endswith("%"),
    ),
    "set": (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer", "minimum": 1, "maximum": 5}},
        lambda v: len(v) == len(set(v)),
        lambda v: len(v) > 1,
    ),
    "map keys": (PORTS, lambda v: len(keys(v)) == len(v) > 0, lambda v: any("protocol" not in item for item in v)),
    "rule": (RANGE, lambda v: v["low"] < v["high"], lambda v: True),
    "one of": (EXCLUSIVE, lambda v: ("a" in v) != ("b" in v) and "c" not in v, lambda v: "b" in v),
    "rule for one": (EXACTLY_ONE, lambda v: len(v) == 1, lambda v: "b" in v),
    "all of": (
        {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 4}]},
        lambda v: v in (3, 4),
        lambda v: v == 4,
    ),
    "any of": (
        {"type": "integer", "anyOf": [{"maximum": -5}, {"minimum": 5}]},
        lambda v: abs(v) >= 5,
        lambda v: v <= -5,
    ),
    "map": (
        {"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 2, "maxProperties": 3},
        lambda v: len(v) in (2, 3),
        lambda v: len(v) == 3,
    ),
    "few properties": (
        {**EXACTLY_ONE, "x-kubernetes-validations": [], "minProperties": 1, "maxProperties": 1},
        lambda v: len(v) == 1,
        lambda v: "b" in v,
    ),
    "free": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        lambda v: isinstance(v, dict),
        lambda v: len(v) > 0,
    ),
    "embedded": (
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        lambda v: v["kind"] and v["metadata"]["name"],
        lambda v: True,
    ),
}


@pytest.mark.spec("O-51")
@pytest.mark.parametrize("case", CASES)
def test_what_a_schema_says_holds_and_is_reached(case: str) -> None:
    schema, holds, reached = CASES[case]
    values = drawn(specs(schema), 60)
    assert all(holds(value) for value in values)
    assert any(reached(value) for value in values)


@pytest.mark.spec("O-51")
def test_optional_fields_come_and_go_and_required_ones_stay() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "object", "properties": {"c": {"type": "boolean"}}}},
    }
    values = drawn(specs(schema))
    assert all("a" in value for value in values)
    assert {tuple(sorted(value)) for value in values} == {("a",), ("a", "b")}
    assert any(value.get("b") for value in values)


@pytest.mark.spec("O-51")
def test_fields_can_be_given_by_path() -> None:
    port = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {
        "type": "object",
        "required": ["image", "ports", "env"],
        "properties": {
            "image": {"type": "string"},
            "ports": {"type": "array", "minItems": 1, "items": port},
            "env": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        },
    }
    given_fields = {
        "spec.image": st.just("nginx"),
        "spec.ports[].name": st.just("http"),
        "spec.env.*": st.just("value"),
    }
    for value in drawn(specs(schema, fields=given_fields)):
        assert value["image"] == "nginx"
        assert {port.get("name", "http") for port in value["ports"]} == {"http"}
        assert set(value["env"].values()) == {"value"}


@pytest.mark.spec("O-51")
def test_names_namespaces_versions_and_status() -> None:
    subresources = {"subresources": {"status": {}}}
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}}
    plain = definition(schema, **subresources)
    properties = plain["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties |= {
        "status": schema,
        "metadata": {"type": "object", "properties": {"name": {"maxLength": 2, "type": "string"}}},
    }
    old = {**plain["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    plain["spec"]["versions"].append(old)
    objects = drawn(strategies.objects_of_crd(plain, namespace="shops"))
    assert all("status" not in obj and obj["apiVersion"] == "example.com/v1" for obj in objects)
    assert all(len(obj["metadata"]["name"]) <= 2 and obj["metadata"]["namespace"] == "shops" for obj in objects)
    assert drawn(strategies.objects_of_crd(plain, version="v1beta1", name="x"), 1)[0]["metadata"]["name"] == "x"
    with pytest.raises(LookupError, match="has no version 'v7': it has v1, v1beta1"):
        strategies.objects_of_crd(plain, version="v7")
    without = definition(schema)
    without["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = schema
    assert any("status" in obj for obj in drawn(strategies.objects_of_crd(without))), "a field like any other"
    assert "namespace" not in drawn(strategies.objects_of_crd(crd_dict(zoo.Animal), name="a1"), 1)[0]["metadata"]


@pytest.mark.spec("O-51")
def test_a_pattern_that_python_cannot_read_asks_for_a_strategy() -> None:
    with pytest.raises(ValueError, match=r"give a strategy for the field, objects\(…, fields="):
        drawn(specs({"type": "string", "pattern": r"^\pL+$"}), 1)
    given_fields = {"spec": st.sampled_from(["abc", "äöü", "1"])}
    assert set(drawn(specs({"type": "string", "pattern": r"^\pL+$"}, fields=given_fields))) == {"abc", "äöü"}


def test_the_class_and_its_definition_draw_the_same_kind() -> None:
    assert {type(obj) for obj in drawn(strategies.objects(WebApp), 5)} == {WebApp}
    assert {obj["kind"] for obj in drawn(strategies.objects_of_crd(crd(WebApp)), 5)} == {"WebApp"}
