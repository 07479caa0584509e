"""Generated classes on the real API server: what class and schema say of generated objects.

Two things must hold for any class and any object. What the class accepts in the form that servers write it, the schema
accepts; and whatever the server stores, the class can read: an object that cannot be read would stop a whole list.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import date, datetime
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from konverge.objects import (
    CustomResource,
    Default,
    ExclusiveMaximum,
    ExclusiveMinimum,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    Model,
    MultipleOf,
    NoStatus,
    ObjectMeta,
    Pattern,
    Quantity,
    Rule,
    Time,
    crd,
    crd_dict,
    field,
    from_json,
    to_json,
)
from konverge.objects.custom.resource import CustomResourceMeta
from konverge.objects.model import ModelMeta
from tests.real.definitions import DEFINITIONS_PATH, Api, installed, wait_until_served


class Color(Enum):
    RED = "red"
    BLUE = "blue"


SCALARS: list[Any] = [
    Annotated[str, MinLength(1), MaxLength(3)],
    Annotated[str, Pattern("^[a-z]+[0-9]?$")],
    int,
    Annotated[int, Minimum(1), Maximum(10)],
    Annotated[int, ExclusiveMinimum(0), MultipleOf(3)],
    float,
    Annotated[float, Minimum(0.5), ExclusiveMaximum(1.5)],
    Annotated[float, ExclusiveMinimum(-1.5), Maximum(-0.5)],
    bool,
    Color,
    Literal["x", "y"],
    Literal[1, 2],
    Quantity,
    int | str,
    Annotated[int, Minimum(0)] | Annotated[str, Pattern("^[0-9]+%$")],
    datetime,
    date,
    UUID,
    bytes,
]
_names = itertools.count()


def _struct(types: list[Any]) -> Any:
    """A class in which every other field is required."""
    fields: dict[str, Any] = {f"f{index}": kind for index, kind in enumerate(types)}
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": dict(fields)}
    for name in list(fields)[1::2]:
        namespace["__annotations__"][name] = fields[name] | None
        namespace[name] = None
    return ModelMeta(f"Part{next(_names)}", (Model,), namespace)


def _list(kind: Any) -> Any:
    return GenericAlias(list, (kind,))


def _map(kind: Any) -> Any:
    return GenericAlias(dict, (str, kind))


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(_list),
        inner.map(lambda kind: Annotated[_list(kind), MinItems(1), MaxItems(2)]),
        inner.map(lambda kind: _list(kind | None)),
        inner.map(lambda kind: Annotated[_map(kind), MaxProperties(2)]),
        inner.map(lambda kind: _map(kind | None)),
        st.lists(inner, min_size=1, max_size=3).map(_struct),
    )


# Of an enumeration the server refuses null in any case, so None beside one is said by the class alone.
kinds = st.recursive(st.sampled_from(SCALARS), _containers, max_leaves=4).filter(lambda kind: not _nullable_enum(kind))


def _nullable_enum(kind: Any) -> bool:
    parts = get_args(kind)
    if type(None) in parts and any(part is Color or isinstance(part, type(Literal["x"])) for part in parts):
        return True
    if isinstance(kind, type) and issubclass(kind, Model):
        return any(_nullable_enum(part) for part in _items(kind))
    return any(_nullable_enum(part) for part in parts if not isinstance(part, str | int))


def _items(model: type[Model]) -> list[Any]:
    """The types of the fields, without the None that only means that a field is absent."""
    types = []
    for info in msgspec.structs.fields(model):
        types += [info.type] if info.required else [part for part in get_args(info.type) if part is not type(None)]
    return [part for part in types if get_args(part) or isinstance(part, type)]


PLAIN: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, -2, 10, 11, 0.5, 1.5, -0.5, 2.5),
    *("", "a", "a1", "abcd", "A", "red", "x", "25%", "5%%", "1Gi", "1e3", "1ki", "1e9999999999", ".5", "100m", "é"),
    *("2026-01-02T03:04:05Z", "2026-01-02", "2026-02-30", "2026-02-30T00:00:00Z"),
    *("0f8fad5b-d9cb-469f-a165-70867728950e", "aGVsbG8=", "aGVsbG8"),
]
anything = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["f0", "a"]), inner)),
    max_leaves=3,
)


def _shaped(node: inspect.Type) -> st.SearchStrategy[Any]:
    """Values that resemble a type: most errors are found near the border."""
    match node:
        case inspect.Metadata(type=inner):
            return _shaped(inner)
        case inspect.StructType(fields=fields):
            required = {field.encode_name: _shaped(field.type) for field in fields if field.required}
            optional = {field.encode_name: _shaped(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries(required, optional=optional)
        case inspect.UnionType(types=types):
            return st.one_of([_shaped(part) for part in types])
        case inspect.ListType(item_type=item):
            return st.lists(_shaped(item), max_size=3)
        case inspect.DictType(value_type=value):
            return st.dictionaries(st.sampled_from("abc"), _shaped(value), max_size=3)
        case inspect.IntType() | inspect.FloatType():
            return st.sampled_from([value for value in PLAIN if isinstance(value, int | float)])
        case inspect.EnumType() | inspect.LiteralType() | inspect.NoneType():
            return st.sampled_from([None, "red", "x", 1])
        case inspect.StrType() | inspect.CustomType():
            return st.sampled_from([value for value in PLAIN if isinstance(value, str)])
    return st.one_of(st.sampled_from(PLAIN), anything)


def _resource(types: list[Any]) -> type[CustomResource[Any, Any]]:
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": {}}
    for index, kind in enumerate(types):
        namespace["__annotations__"][f"p{index}"] = kind | None
        namespace[f"p{index}"] = None
    spec = ModelMeta(f"Spec{next(_names)}", (Model,), namespace)
    name = f"Made{next(_names)}"
    body = {"__module__": __name__, "__qualname__": name, "__orig_bases__": (CustomResource[spec, NoStatus],)}
    return CustomResourceMeta(name, (CustomResource,), body, group="made.example.com", version="v1")


def _post(api: Api, cls: type[CustomResource[Any, Any]], body: bytes) -> tuple[int, Any]:
    status, answer = api("POST", cls.resource.path("default") + "?dryRun=All&fieldValidation=Ignore", body)
    assert status in (201, 422), answer
    return status, answer


@settings(
    max_examples=6,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(st.lists(kinds, min_size=12, max_size=12), st.data())
def test_class_and_schema_agree_on_generated_objects(real_api: Api, types: list[Any], data: st.DataObject) -> None:
    cls = _resource(types)
    definition = crd_dict(cls)
    status, answer = real_api("POST", DEFINITIONS_PATH, json.dumps(definition).encode())
    assert status == 201, answer["message"]
    try:
        wait_until_served(real_api, definition["metadata"]["name"])
        for index, kind in enumerate(types):
            values = st.one_of(_shaped(inspect.type_info(kind)), _shaped(inspect.type_info(kind)), anything)
            for value in data.draw(st.lists(values, min_size=8, max_size=8)):
                _compare(real_api, cls, kind, {f"p{index}": value})
    finally:
        real_api("DELETE", f"{DEFINITIONS_PATH}/{definition['metadata']['name']}")


def _compare(api: Api, cls: type[CustomResource[Any, Any]], kind: Any, spec: dict[str, Any]) -> None:
    identity = {"apiVersion": cls.resource.api_version, "kind": cls.resource.kind, "metadata": {"name": "a"}}
    body = json.dumps(identity | {"spec": spec}).encode()
    status, answer = _post(api, cls, body)
    if status == 201:
        assert from_json(cls, json.dumps(answer)) is not None, (kind, spec)
    try:
        read = from_json(cls, body)
    except msgspec.ValidationError:
        return
    read.metadata = ObjectMeta(name="a")
    status, answer = _post(api, cls, to_json(read))
    assert status == 201, (kind, spec, answer["message"])
    assert from_json(cls, json.dumps(answer)).spec == read.spec, (kind, spec)


class Ruled(Model, rules=[Rule("self.a < 9", message="of the class")]):
    a: int = 1
    b: int = 2


class CornerSpec(Model):
    ruled: Annotated[Ruled, Rule("self.a != 5", message="of the field")] = field(default_factory=Ruled)
    many: list[Ruled] = field(default_factory=lambda: [Ruled(a=3)])
    preset: Annotated[Ruled | None, Default({"a": 3})] = None
    gaps: list[int | None] = []
    port: Annotated[int, Minimum(1)] = 0
    data: bytes = b""
    since: Time = ""


class Corner(CustomResource[CornerSpec, NoStatus], group="made.example.com", version="v1"):
    """Fields that were once accepted, refused or dropped by mistake."""


@pytest.fixture(scope="module")
def corners(real_api: Api) -> Iterator[Api]:
    with installed(real_api, crd(Corner)):
        yield real_api


def _corner(corners: Api, **spec: Any) -> tuple[int, Any]:
    identity = {"apiVersion": "made.example.com/v1", "kind": "Corner", "metadata": {"name": "a"}}
    return _post(corners, Corner, json.dumps(identity | {"spec": spec}).encode())


def test_defaults_mean_the_same_to_class_and_server(corners: Api) -> None:
    status, answer = _corner(corners)
    assert status == 201, answer["message"]
    assert answer["spec"] == {"ruled": {"a": 1, "b": 2}, "many": [{"a": 3, "b": 2}], "preset": {"a": 3, "b": 2}}
    assert from_json(Corner, json.dumps(answer)).spec == CornerSpec(preset=Ruled(a=3))


def test_null_in_a_list_is_kept(corners: Api) -> None:
    _, answer = _corner(corners, gaps=[1, None])
    assert answer["spec"]["gaps"] == [1, None]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"ruled": {"a": 9}}, "of the class"),
        ({"ruled": {"a": 5}}, "of the field"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"since": []}, "at least 1 items"),
        ({"since": ["2026-01-02T03:04:05Z"]}, "at most 0 items"),
        ({"data": [1]}, "at most 0 items"),
    ],
)
def test_the_server_refuses_what_the_class_forbids(corners: Api, spec: dict[str, Any], message: str) -> None:
    status, answer = _corner(corners, **spec)
    assert (status, message in answer["message"]) == (422, True), answer
