"""The types of the built-in kinds, out of the generated files, as they are asked for.

A file holds the structs of one group-version, a line each (tools/generate_schema.py describes the form). Reading a file
only indexes its lines; a struct's line is parsed when a kind that reaches it is looked up for the first time.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, Literal, cast

import msgspec

from konverge.apiserver.schema.node import DEDUCED, UNTYPED, Field, Kind, TypeNode

_DATA = Path(__file__).resolve().parent.parent / "data" / "schema"
_OMIT: tuple[Literal["", "omitempty", "omitzero"], ...] = ("", "omitempty", "omitzero")
_KIND, _ATOMIC = 1, 2
_POINTER = 4
_GO_NAMES = {
    "bytes": "[]uint8",
    "quantity": "resource.Quantity",
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "intOrString": "intstr.IntOrString",
    "rawExtension": "runtime.RawExtension",
    "fieldsV1": "v1.FieldsV1",
}
_structs: dict[str, TypeNode] = {}
_unfinished: dict[str, TypeNode] = {}
_making = RLock()
"""Held while structs are made: large bodies are decoded on threads (`aside.py`), which must not see half of one."""


def lookup(group: str, version: str, kind: str) -> TypeNode | None:
    """The type of a built-in kind, or None. Options and other kinds of no group are in `meta.k8s.io`, v1."""
    chunk = f"{group.partition('.')[0] or 'core'}_{version}"
    if chunk not in _chunks():  # the names come from clients: they must not become paths, nor be remembered
        return None
    line = _lines(chunk).get(kind)
    if line is None or not (line[0] & _KIND or chunk == "meta_v1"):
        return None
    return _struct(f"{chunk}.{kind}")


def object_meta() -> TypeNode:
    """metadata, as every kind has it."""
    return _struct("meta_v1.ObjectMeta")


def definition_schema() -> TypeNode:
    """A schema inside a CustomResourceDefinition; it contains itself through types that are more than a struct."""
    return _struct("apiextensions_v1.JSONSchemaProps")


@cache
def _chunks() -> frozenset[str]:
    """The group-versions that there are."""
    return frozenset(path.name.removesuffix(".json.gz") for path in _DATA.iterdir())


@cache
def _lines(chunk: str) -> dict[str, tuple[int, bytes]]:
    """Struct name -> (flags, its line)."""
    data = gzip.decompress((_DATA / f"{chunk}.json.gz").read_bytes())
    lines = {}
    for line in data.split(b"\n"):
        name, _, text = line.partition(b" ")
        lines[name.decode()] = (text[1] - ord("0"), text)
    return lines


def _struct(ref: str) -> TypeNode:
    """The struct `chunk.Name`."""
    node = _structs.get(ref)
    if node is not None:
        return node
    with _making:
        node = _structs.get(ref) or _unfinished.get(ref)
        return _make(ref) if node is None else node


def _make(ref: str) -> TypeNode:
    """A struct is there before its fields are, since types may contain themselves."""
    chunk, _, name = ref.partition(".")
    flags, line = _lines(chunk)[name]
    package = chunk.rpartition("_")[2]
    outermost = not _unfinished
    node = _unfinished[ref] = TypeNode(Kind.STRUCT, go=f"{package}.{name}", atomic=bool(flags & _ATOMIC))
    for entry in msgspec.json.decode(line)[1]:
        node.fields[entry[0]] = _field(entry)
    if not node.fields:
        node.element = DEDUCED
    if outermost:
        _structs.update(_unfinished)
        _unfinished.clear()
    return node


def _field(entry: list[Any]) -> Field:
    name, type_, flags, *rest = entry + ["", "", 0][len(entry) :]
    return Field(name, _type(type_), _OMIT[flags & 3], bool(flags & _POINTER), *rest)


def _type(entry: Any) -> TypeNode:
    if isinstance(entry, str):
        if entry.startswith(("@!", "@~")):
            return _owned(entry[2:], atomic=entry[1] == "!")
        return _struct(entry[1:]) if entry[0] == "@" else _scalar(entry)
    if entry[0] == "map":
        return _map(*entry[1:])
    return _list(*entry[1:])


def _map(element: Any, atomic: int, go: str = "") -> TypeNode:
    node = _type(element)
    return TypeNode(Kind.MAP, go=go or f"map[string]{node.go}", element=node, atomic=bool(atomic))


def _list(element: Any, relation: str = "atomic", keys: Any = (), defaults: Any = None, go: str = "") -> TypeNode:
    node = _type(element)
    return TypeNode(
        Kind.LIST,
        go=go or f"[]{node.go}",
        element=node,
        atomic=relation == "atomic",
        list_type=cast("Literal['atomic', 'set', 'map']", relation),
        map_keys=tuple(keys),
        key_defaults=defaults or {},
    )


@cache
def _owned(ref: str, *, atomic: bool) -> TypeNode:
    """A struct that is owned as a whole, or field by field, in this place only."""
    node = _struct(ref)
    return TypeNode(Kind.STRUCT, go=node.go, fields=node.fields, element=node.element, atomic=atomic)


@cache
def _scalar(entry: str) -> TypeNode:
    scalar, _, go = entry.partition(":")
    if scalar == "rawExtension":
        return TypeNode(Kind.ANY, scalar=scalar, go=_GO_NAMES[scalar], atomic=True, element=UNTYPED)
    if scalar in ("json", "schemaOrArray", "schemaOrBool", "schemaOrStrings"):
        return TypeNode(Kind.ANY, scalar=scalar, go="v1.JSON", element=DEDUCED)
    if scalar == "fieldsV1":
        return TypeNode(Kind.MAP, scalar=scalar, go="v1.FieldsV1", element=DEDUCED)
    return TypeNode(Kind.SCALAR, scalar=scalar, go=go or _GO_NAMES.get(scalar, scalar))
