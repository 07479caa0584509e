"""From a model to a structural schema that the API server accepts.

msgspec describes the types; this module says the same in the dialect of OpenAPI that definitions use: no references, no
unions but int-or-string, every object either with named properties or with free ones. Defaults of the class become
defaults of the schema, so that a field left out means the same to both.
"""

from __future__ import annotations

import inspect as python_inspect
import re
from typing import Any

from msgspec import NODEFAULT, inspect

from konverge.objects.codec import to_builtins
from konverge.objects.meta import ObjectMeta
from konverge.objects.model import Model, Required
from konverge.objects.quantity import Quantity

Schema = dict[str, Any]

_QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}


class SchemaError(TypeError):
    """The class cannot be said in a structural schema; the message names the field and what to use instead."""


def schema_of(model: type[Model]) -> Schema:
    """The structural schema of a model."""
    return _Writer().of_type(inspect.type_info(model), model.__name__)


class _Writer:
    def __init__(self) -> None:
        self._open: list[type] = []

    def of_type(self, node: inspect.Type, path: str) -> Schema:
        match node:
            case inspect.Metadata(type=inner, extra_json_schema=extra):
                return self.of_type(inner, path) | (extra or {})
            case inspect.StructType():
                return self._struct(node, path)
            case inspect.UnionType():
                return self._union(node, path)
            case inspect.ListType() | inspect.SetType() | inspect.FrozenSetType() | inspect.VarTupleType():
                return self._list(node, path)
            case inspect.DictType():
                return self._map(node, path)
            case inspect.CustomType(cls=cls) if cls is Quantity:
                return _INT_OR_STRING | {"pattern": _QUANTITY_PATTERN}
        return _scalar(node, path)

    def _struct(self, node: inspect.StructType, path: str) -> Schema:
        if node.cls is ObjectMeta:
            return {"type": "object"} | _ANYTHING
        if node.cls in self._open:
            raise SchemaError(
                f"{path}: {node.cls.__name__} contains itself, which no structural schema can say; use Any"
            )
        if node.tag_field is not None:
            raise SchemaError(f"{path}: {node.cls.__name__} is a tagged struct; use optional fields, one for each case")
        self._open.append(node.cls)
        schema: Schema = {"type": "object"}
        if text := _description(node.cls):
            schema["description"] = text
        properties = {field.encode_name: self._field(field, f"{path}.{field.encode_name}") for field in node.fields}
        if properties:
            schema["properties"] = properties
        if required := [field.encode_name for field in node.fields if _is_required(field)]:
            schema["required"] = sorted(required)
        if rules := rules_of(node.cls):
            schema["x-kubernetes-validations"] = rules
        self._open.pop()
        return schema

    def _field(self, field: inspect.Field, path: str) -> Schema:
        schema = self.of_type(field.type, path)
        if "default" in schema or _is_required(field):
            return schema
        default = _default(field)
        # An empty text stands for "not given" even where the schema would refuse it as a value.
        if default is None or default == [] or (default == "" and not _allows_empty(schema)):
            return schema
        if default == {} and "properties" not in schema:
            return schema
        return schema | {"default": _spelled_out(default, schema)}

    def _union(self, node: inspect.UnionType, path: str) -> Schema:
        some = [part for part in node.types if not isinstance(part, inspect.NoneType)]
        if len(some) == 1:
            return self.of_type(some[0], path)
        if {type(_plain(part)) for part in some} == {inspect.IntType, inspect.StrType}:
            return dict(_INT_OR_STRING)
        raise SchemaError(f"{path}: of unions only int | str and X | None can be said in a structural schema; use Any")

    def _list(
        self, node: inspect.ListType | inspect.SetType | inspect.FrozenSetType | inspect.VarTupleType, path: str
    ) -> Schema:
        schema: Schema = {"type": "array", "items": self.of_type(node.item_type, f"{path}[]")}
        if isinstance(node, inspect.SetType | inspect.FrozenSetType):
            schema["x-kubernetes-list-type"] = "set"
        return schema | _given(minItems=node.min_length, maxItems=node.max_length)

    def _map(self, node: inspect.DictType, path: str) -> Schema:
        if not isinstance(_plain(node.key_type), inspect.StrType):
            raise SchemaError(f"{path}: the keys of a map are texts in JSON; use dict[str, …]")
        schema: Schema = {"type": "object"}
        if isinstance(node.value_type, inspect.AnyType):
            schema |= _ANYTHING
        else:
            schema["additionalProperties"] = self.of_type(node.value_type, f"{path}{{}}")
        return schema | _given(minProperties=node.min_length, maxProperties=node.max_length)


def _scalar(node: inspect.Type, path: str) -> Schema:
    match node:
        case inspect.StrType():
            lengths = _given(minLength=node.min_length, maxLength=node.max_length, pattern=node.pattern)
            return {"type": "string"} | lengths
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _bounds(node)
        case inspect.FloatType():
            return {"type": "number"} | _bounds(node)
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.EnumType(cls=cls):
            return _enum([member.value for member in cls], path)
        case inspect.LiteralType(values=values):
            return _enum(list(values), path)
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.DateType():
            return {"type": "string", "format": "date"}
        case inspect.UUIDType():
            return {"type": "string", "format": "uuid"}
        case inspect.BytesType():
            return {"type": "string", "format": "byte"}
        case inspect.AnyType() | inspect.RawType():
            return dict(_ANYTHING)
    raise SchemaError(f"{path}: {type(node).__name__.removesuffix('Type')} has no form in a structural schema")


def _bounds(node: inspect.IntType | inspect.FloatType) -> Schema:
    schema = _given(minimum=node.ge, maximum=node.le, multipleOf=node.multiple_of)
    if node.gt is not None:
        schema |= {"minimum": node.gt, "exclusiveMinimum": True}
    if node.lt is not None:
        schema |= {"maximum": node.lt, "exclusiveMaximum": True}
    return schema


def _enum(values: list[Any], path: str) -> Schema:
    if all(isinstance(value, str) for value in values):
        return {"type": "string", "enum": values}
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return {"type": "integer", "format": "int64", "enum": values}
    raise SchemaError(f"{path}: the values of an enumeration are all texts or all integers")


def _given(**keywords: Any) -> Schema:
    return {name: value for name, value in keywords.items() if value is not None}


def _plain(node: inspect.Type) -> inspect.Type:
    return _plain(node.type) if isinstance(node, inspect.Metadata) else node


def _is_required(field: inspect.Field) -> bool:
    return field.required or isinstance(field.default_factory, Required)


def _default(field: inspect.Field) -> Any:
    if field.default is not NODEFAULT:
        return to_builtins(field.default)
    return to_builtins(field.default_factory())


def _spelled_out(default: Any, schema: Schema) -> Any:
    """A default with the defaults of its parts: the server runs CEL rules on it before it would fill them in."""
    if not isinstance(default, dict):
        return default
    known = schema.get("properties", {})
    parts = {name: part["default"] for name, part in known.items() if "default" in part}
    return parts | {name: _spelled_out(value, known.get(name, {})) for name, value in default.items()}


def _allows_empty(schema: Schema) -> bool:
    pattern = schema.get("pattern")
    return not schema.get("minLength") and "enum" not in schema and (not pattern or re.search(pattern, "") is not None)


def _description(cls: type) -> str:
    """The first paragraph of a class's own docstring; generated kinds have none worth repeating."""
    text = cls.__dict__.get("__doc__") or ""
    if cls.__module__.startswith("konverge.objects."):
        return ""
    return " ".join(python_inspect.cleandoc(text).split("\n\n")[0].split())


def rules_of(cls: type) -> list[Schema]:
    """The CEL rules of a class: `class Spec(Model, rules=[Rule("self.min <= self.max")])`."""
    found: list[Schema] = []
    for meta in getattr(cls, "__rules__", ()):
        found += (meta.extra_json_schema or {}).get("x-kubernetes-validations", [])
    return found
