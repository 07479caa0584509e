"""From a model to a structural schema that the API server accepts.

msgspec describes the types; this module says the same in the dialect of OpenAPI that definitions use: no references, no
unions but int-or-string, every object either with named properties or with free ones. Defaults of the class become
defaults of the schema, so that a field left out means the same to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_origin
from weakref import WeakKeyDictionary

import msgspec
from msgspec import NODEFAULT, inspect

from konverge.objects import cel_names
from konverge.objects.codec import decode_hook, to_builtins
from konverge.objects.custom.annotations import evaluate
from konverge.objects.custom.docstrings import field_docstrings, first_paragraph
from konverge.objects.custom.markers import ASCII_PREFIX
from konverge.objects.meta import Condition, ObjectMeta
from konverge.objects.model import Model, Required
from konverge.objects.quantity import Quantity

Schema = dict[str, Any]

_QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*[0-9]{1,9})?$"
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
# Where a text has a format, the server lets any list pass for it, and no class could read the object afterwards. No
# list has both at least one item and none.
_NO_LIST: Schema = {"minItems": 1, "maxItems": 0}
_RULES = "x-kubernetes-validations"
_KEYS = "x-kubernetes-list-map-keys"


schemas_of_classes: WeakKeyDictionary[type[msgspec.Struct], bytes] = WeakKeyDictionary()
"""As JSON. Each test of an operator needs those of its classes, and many parts are in several places: writing a schema
takes a hundred times as long as reading its text, and copying one thirty times as long."""


class SchemaError(TypeError):
    """The class cannot be said in a structural schema; the message names the field and what to use instead."""


def schema_of(model: type[Model]) -> Schema:
    """The structural schema of a model."""
    if model not in schemas_of_classes:
        write_schemas((model,))
    schema: Schema = msgspec.json.decode(schemas_of_classes[model])
    return schema


def write_schemas(models: Iterable[type[Model]]) -> None:
    """Get the schemas of these ready. Of several at once, what they have in common is described once."""
    missing = [model for model in models if model not in schemas_of_classes]
    evaluate(missing)
    for model, described in zip(missing, inspect.multi_type_info(missing), strict=True):
        schema = _Writer().of_type(described, model.__name__)
        if model not in schemas_of_classes:  # ObjectMeta, which is not written out
            schemas_of_classes[model] = msgspec.json.encode(schema)


class _Writer:
    def __init__(self) -> None:
        self._open: list[type] = []

    def of_type(self, node: inspect.Type, path: str) -> Schema:
        schema = self._of_type(node, path)
        return schema | _NO_LIST if schema.get("type") == "string" and "format" in schema else schema

    def _of_type(self, node: inspect.Type, path: str) -> Schema:
        match node:
            case inspect.Metadata(type=inner, extra_json_schema=extra):
                return _marked(self.of_type(inner, path), extra or {}, path)
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
        known = schemas_of_classes.get(node.cls)
        if known is None:
            self._open.append(node.cls)
            known = schemas_of_classes[node.cls] = msgspec.json.encode(self._written(node, path))
            self._open.pop()
        schema: Schema = msgspec.json.decode(known)
        return schema

    def _written(self, node: inspect.StructType, path: str) -> Schema:
        schema: Schema = {"type": "object"}
        if text := _description(node.cls):
            schema["description"] = text
        texts = field_docstrings(node.cls) if _is_described(node.cls) else {}
        hints = _Hints(node.cls)
        properties = {
            field.encode_name: _described(
                self._field(field, hints, f"{path}.{field.encode_name}"), field, texts.get(field.name, "")
            )
            for field in node.fields
        }
        if properties:
            schema["properties"] = properties
        if required := [field.encode_name for field in node.fields if _is_required(field)]:
            schema["required"] = sorted(required)
        return _ruled(schema, rules_of(node.cls), path)

    def _field(self, field: inspect.Field, hints: _Hints, path: str) -> Schema:
        schema = self.of_type(field.type, path)
        if "default" in schema:
            return schema | {"default": _spelled_out(schema["default"], schema)}
        if _is_required(field):
            return schema
        default = _default(field)
        # An empty text stands for "not given" even where the schema would refuse it as a value.
        if default is None or default == [] or (default == "" and not _allows_empty(schema)):
            return schema
        if default == {} and "properties" not in schema:
            return schema
        if refusal := _refusal(default, hints.of(field.name)):
            if not default:  # as an empty text does, zero stands for "not given"
                return schema
            raise SchemaError(f"{path}: the class itself refuses the default {default!r}: {refusal}")
        return schema | {"default": _spelled_out(default, schema)}

    def _union(self, node: inspect.UnionType, path: str) -> Schema:
        some = [part for part in node.types if not isinstance(part, inspect.NoneType)]
        if len(some) == 1 and not isinstance(some[0], inspect.RawType):  # Raw | None reads nothing but null
            return self.of_type(some[0], path)
        if {type(_plain(part)) for part in some} == {inspect.IntType, inspect.StrType}:
            # Bounds of numbers and patterns of texts do not meet, so they may stand side by side.
            bounds = [self.of_type(part, path) for part in some]
            both = {name: value for bound in bounds for name, value in bound.items() if name not in ("type", "format")}
            return _INT_OR_STRING | both
        raise SchemaError(f"{path}: of unions only int | str and X | None can be said in a structural schema; use Any")

    def _list(
        self, node: inspect.ListType | inspect.SetType | inspect.FrozenSetType | inspect.VarTupleType, path: str
    ) -> Schema:
        schema: Schema = {"type": "array", "items": self._element(node.item_type, f"{path}[]")}
        if isinstance(node, inspect.SetType | inspect.FrozenSetType):
            schema["x-kubernetes-list-type"] = "set"
        return schema | _given(minItems=node.min_length, maxItems=node.max_length)

    def _element(self, node: inspect.Type, path: str) -> Schema:
        """Of a list or map. There, None cannot mean absent: it is a value."""
        schema = self.of_type(node, path)
        inner = _plain(node)
        null = isinstance(inner, inspect.UnionType) and any(isinstance(part, inspect.NoneType) for part in inner.types)
        return schema | {"nullable": True} if null else schema

    def _map(self, node: inspect.DictType, path: str) -> Schema:
        key = _plain(node.key_type)
        if not isinstance(key, inspect.StrType):
            raise SchemaError(f"{path}: the keys of a map are texts in JSON; use dict[str, …]")
        if (key.min_length, key.max_length, key.pattern) != (None, None, None):
            raise SchemaError(
                f"{path}: a structural schema cannot bound the keys of a map; use dict[str, …] and a rule, "
                'such as Rule("self.all(key, key.size() <= 63)")'
            )
        schema: Schema = {"type": "object"}
        if isinstance(node.value_type, inspect.AnyType):
            schema |= _ANYTHING
        else:
            schema["additionalProperties"] = self._element(node.value_type, f"{path}{{}}")
        return schema | _given(minProperties=node.min_length, maxProperties=node.max_length)


def _scalar(node: inspect.Type, path: str) -> Schema:
    match node:
        case inspect.StrType():
            pattern = _as_written(node.pattern) if node.pattern is not None else None
            return {"type": "string"} | _given(minLength=node.min_length, maxLength=node.max_length, pattern=pattern)
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _bounds(node)
        case inspect.FloatType():
            return {"type": "number"} | _float_bounds(node, path)
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.EnumType(cls=cls):
            return _enum([member.value for member in cls], path)
        case inspect.LiteralType(values=values):
            return _enum([value for value in values if value is not None], path)
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


def _as_written(pattern: str) -> str:
    return pattern[len(ASCII_PREFIX) : -1] if pattern.startswith(ASCII_PREFIX) else pattern


def _float_bounds(node: inspect.FloatType, path: str) -> Schema:
    """The server compares whole numbers with the whole part of a bound (0 passes for at least 0.5); a rule does not."""
    if node.multiple_of is not None and not _whole(node.multiple_of):
        raise SchemaError(f"{path}: API servers cannot check multiples of {node.multiple_of}; count in a smaller unit")
    schema = _bounds(node)
    bounds = ((">=", node.ge), ("<=", node.le), (">", node.gt), ("<", node.lt))
    rules = [{"rule": f"self {sign} {bound!r}"} for sign, bound in bounds if bound is not None and not _whole(bound)]
    if not rules:
        return schema
    for limit in ("minimum", "maximum"):
        if not _whole(schema.get(limit, 0)):
            schema.pop(f"exclusive{limit.capitalize()}", None)
    return schema | {_RULES: rules}


def _whole(number: float) -> bool:
    return float(number).is_integer()


def _marked(schema: Schema, extra: Schema, path: str) -> Schema:
    """A schema with the keywords of its markers. Rules are added to those that the type has by itself."""
    properties = schema.get("items", {}).get("properties", {})
    needed = schema.get("items", {}).get("required", [])
    for key in extra.get(_KEYS, ()):
        if key not in needed and "default" not in properties.get(key, {}):
            raise SchemaError(
                f"{path}: {key!r} can be a key only as a required field of the entries, or with a default"
            )
    return _ruled(schema | extra, schema.get(_RULES, []) + extra.get(_RULES, []), path)


def _ruled(schema: Schema, rules: list[Schema], path: str) -> Schema:
    """A schema with its rules, which must write the names of fields as CEL has them."""
    if not rules:
        return schema
    names = [name for name in dict.fromkeys(_names_below(schema)) if cel_names.escape(name) != name]
    for text in (rule[key] for rule in rules for key in ("rule", "messageExpression") if key in rule):
        if (name := cel_names.unescaped_in(text, names)) is not None:
            written = cel_names.escape(name)
            instead = f"write {written}" if written else "no rule can name it"
            raise SchemaError(f"{path}: the field {name!r} is not a name of CEL: {instead} (in the rule {text!r})")
    return schema | {_RULES: rules}


def _names_below(schema: Schema) -> Iterator[str]:
    """The fields that a rule on a schema can select."""
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from _names_below(part)
    for keyword in ("items", "additionalProperties"):
        if isinstance(part := schema.get(keyword), dict):
            yield from _names_below(part)


class _Hints:
    """The annotations of a class. They are evaluated when one is asked for: that takes longer than all the rest."""

    def __init__(self, cls: type[msgspec.Struct]) -> None:
        self._cls = cls
        self._known: dict[str, Any] = {}

    def of(self, name: str) -> Any:
        if not self._known:
            self._known = {field.name: field.type for field in msgspec.structs.fields(self._cls)}
        return self._known[name]


def _refusal(default: Any, hint: Any) -> str:
    """What the class would say of its own default."""
    try:
        msgspec.convert(default, hint, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


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
    # A field that is UNSET by default has no default that msgspec reports.
    return None if field.default_factory is NODEFAULT else to_builtins(field.default_factory())


def _spelled_out(default: Any, schema: Schema) -> Any:
    """A default with the defaults of its parts: the server runs CEL rules on it before it would fill them in."""
    if isinstance(default, list):
        return [_spelled_out(value, schema.get("items", {})) for value in default]
    if not isinstance(default, dict):
        return default
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    parts = {name: part["default"] for name, part in known.items() if "default" in part}
    return parts | {name: _spelled_out(value, known.get(name, others)) for name, value in default.items()}


def _allows_empty(schema: Schema) -> bool:
    if schema.get("minLength") or "enum" in schema or "format" in schema:
        return False
    pattern = schema.get("pattern")
    return not pattern or re.search(pattern, "") is not None


def _described(schema: Schema, field: inspect.Field, docstring: str) -> Schema:
    """A field's schema with its docstring, which says more than that of its class; a marker counts more than both."""
    marked = isinstance(field.type, inspect.Metadata) and "description" in (field.type.extra_json_schema or {})
    return schema if marked or not docstring else schema | {"description": first_paragraph(docstring)}


def _description(cls: type) -> str:
    """The first paragraph of a class's own docstring."""
    text = vars(get_origin(cls) or cls).get("__doc__") or ""
    return first_paragraph(text) if _is_described(cls) else ""


def _is_described(cls: type) -> bool:
    """Not the built-in kinds: a definition that contains a PodSpec would exceed what kubectl applies."""
    return cls is Condition or not cls.__module__.startswith("konverge.objects.")


def rules_of(cls: type) -> list[Schema]:
    """The CEL rules of a class: `class Spec(Model, rules=[Rule("self.min <= self.max")])`."""
    rules: list[Schema] = []
    for meta in getattr(cls, "__rules__", ()):
        rules += (meta.extra_json_schema or {}).get("x-kubernetes-validations", [])
    return rules
