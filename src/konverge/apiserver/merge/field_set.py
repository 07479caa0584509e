"""Sets of field paths, kept in the form in which `managedFields` writes them.

A set is a nested dict: its keys are path elements (`f:name`, `k:{"name":"c"}`, `v:"x"`, `i:0`), its values the sets
below. `{}` below a key makes the key itself a member; `"."` beside other keys does so where there are more below it:

    {"f:spec": {"f:replicas": {}, "f:ports": {".": {}, "k:{\\"port\\":80}": {}}}}     spec.replicas, spec.ports, …

The empty set is `{}`. Elements are compared as texts, so texts must be canonical (`canonical` sees to it for what comes
from outside). Operations share their arguments' parts; a set is never changed in place.

Upstream: structured-merge-diff fieldpath/ (set.go, serialize.go, serialize-pe.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.go.json import encode
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.schema.node import Kind, TypeNode
from konverge.objects.text_cache import remembered

FieldSet = dict[str, Any]
Path = tuple[str, ...]
SELF = "."
_ESCAPE = re.compile(r"\\.")
_LONG_ESCAPES = {"\\b": "\\u0008", "\\f": "\\u000c"}
_SHORT_EXPONENT = re.compile(r"e([+-])([0-9])$")


class FieldSetError(ValueError):
    """A `fieldsV1` that cannot be read."""


def of(*paths: Iterable[str]) -> FieldSet:
    """The set of these paths; a path is its elements."""
    fields: FieldSet = {}
    for path in paths:
        *parents, last = path
        here = fields
        for element in parents:
            below = here.get(element)
            if below == {}:
                below = here[element] = {SELF: {}}
            here = here.setdefault(element, {})
        here[last] = {SELF: {}, **here[last]} if here.get(last) else {}
    return fields


def is_member(below: FieldSet) -> bool:
    """Whether the element above `below` is itself in the set."""
    return not below or SELF in below


def has(fields: FieldSet, path: Path) -> bool:
    here = fields
    for element in path:
        below = here.get(element)
        if below is None:
            return False
        here = below
    return bool(path) and is_member(here)


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a or not b or a is b:
        return a or b
    out = dict(a)
    for element, below in b.items():
        mine = out.get(element)
        out[element] = below if mine is None else _union_below(mine, below)
    return out


def union_all(sets: list[FieldSet]) -> FieldSet:
    """The union of many sets, pairs first: adding them one by one to a growing set would copy it each time."""
    while len(sets) > 1:
        odd = sets[-1:] if len(sets) % 2 else []
        sets = [union(a, b) for a, b in zip(sets[::2], sets[1::2], strict=False)] + odd
    return sets[0] if sets else {}


def _union_below(a: FieldSet, b: FieldSet) -> FieldSet:
    if a and b:
        return union(a, b)
    more = a or b
    return more if not more or SELF in more else {SELF: {}, **more}


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    out = {}
    for element, below in a.items():
        other = b.get(element)
        if other is not None and element != SELF:
            common = _node(is_member(below) and is_member(other), intersection(below, other))
            if common is not None:
                out[element] = common
    return out


def difference(a: FieldSet, b: FieldSet, *, recursive: bool = False) -> FieldSet:
    """The paths of `a` that are not in `b`; a path below one in `b` stays, unless `recursive`.

    Upstream: Set.Difference and Set.RecursiveDifference.
    """
    if not b and (recursive or SELF not in a):
        return a
    out = dict(a)
    out.pop(SELF, None)
    for element, other in b.items():
        below = out.get(element)
        if below is None:
            continue
        gone = is_member(other)
        rest = None
        if not (gone and recursive):
            rest = _node(is_member(below) and not gone, difference(below, other, recursive=recursive))
        if rest is None:
            del out[element]
        else:
            out[element] = rest
    return out


def _node(member: bool, below: FieldSet) -> FieldSet | None:
    """What stands below an element; None where there is nothing, and it is no member either."""
    if member:
        return {SELF: {}, **below} if below else {}
    return below or None


def with_named(fields: FieldSet, node: TypeNode | None) -> FieldSet:
    """With every declared field on the way to a member made a member as well."""
    out: FieldSet = {}
    for element, below in fields.items():
        if not below:
            out[element] = below
            continue
        inner, named = _descend(node, element)
        extended = with_named(below, inner)
        out[element] = {SELF: {}, **extended} if named and SELF not in extended else extended
    return out


def _descend(node: TypeNode | None, element: str) -> tuple[TypeNode | None, bool]:
    """The type below an element, and whether the element is a declared field."""
    if node is None:
        return None, False
    if element.startswith("f:") and node.kind is not Kind.LIST:
        name = element[2:]
        return node.child(name), name in node.fields
    return (node.element, False) if element.startswith("k:") and node.kind is Kind.LIST else (None, False)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """All members, those of a level before those below it, in canonical order."""
    elements = _sorted(element for element in fields if element != SELF)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], (*prefix, element))


def ordered(fields: FieldSet) -> FieldSet:
    """The same set with its keys in canonical order, for writing."""
    return {element: ordered(below) if (below := fields[element]) else below for element in _sorted(fields)}


def _sorted(fields: Iterable[str]) -> list[str]:
    """Names of fields are in order as texts; other elements are not."""
    elements = sorted(fields)
    return elements if not elements or elements[-1][0] <= "f" else sorted(elements, key=order)


@remembered(8192)
def order(element: str) -> tuple[Any, ...]:
    """Fields, keys, values, indices; each by its content."""
    if element == SELF:
        return (0,)
    kind, content = element[0], element[2:]
    if kind == "f":
        return (1, content)
    if kind == "k":
        return (2, [(name, _rank(value)) for name, value in msgspec.json.decode(content).items()])
    if kind != "v":
        return (4, int(content))
    return (3, _rank(content[1:-1] if _is_plain_text(content) else msgspec.json.decode(content)))


def _is_plain_text(content: str) -> bool:
    """A JSON string without escapes: what is between the quotes is the text."""
    return content[:1] == '"' and "\\" not in content


def _rank(value: Any) -> tuple[int, Any]:
    """Values of different types have an order too: numbers, strings, booleans, null."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, 0)


def show(path: Path) -> str:
    """A path as messages print it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(show_element, path))


def show_element(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        keys = msgspec.json.decode(content).items()
        return "[" + ",".join(f"{name}={_shown(value)}" for name, value in keys) + "]"
    return f"[={_shown(msgspec.json.decode(content))}]" if kind == "v" else f"[{content}]"


def _shown(value: Any) -> str:
    """A scalar inside of a path. Upstream: value.ToString."""
    if value is None:
        return "null"
    return quote(value) if isinstance(value, str) else go_value(value)


def key_element(keys: dict[str, Any]) -> str:
    """`k:` with the fields that identify a list item."""
    return "k:{" + ",".join(f"{_json(name)}:{_json(keys[name])}" for name in sorted(keys)) + "}"


def value_element(value: Any) -> str:
    return f"v:{_json(value)}"


def _json(value: Any) -> str:
    """A scalar as value.ToJSON writes it: json-iterator has longer escapes and exponents than encoding/json."""
    text = encode(value)
    if "\\" in text:
        return _ESCAPE.sub(lambda escape: _LONG_ESCAPES.get(escape[0], escape[0]), text)
    return _SHORT_EXPONENT.sub(r"e\g<1>0\2", text) if isinstance(value, float) else text


def canonical(fields: Any) -> FieldSet:
    """A `fieldsV1` from outside as a set. Elements of unknown kinds are dropped."""
    if not isinstance(fields, dict):
        raise FieldSetError("fieldsV1 is not an object")
    out: FieldSet = {}
    for element, below in fields.items():
        if element == SELF:
            out[SELF] = {}
            continue
        known = _canonical_element(element)
        if known:
            out[known] = canonical(below)
    return {} if out.keys() == {SELF} else out


@remembered(8192)
def _canonical_element(element: str) -> str:
    kind, separator, content = element[:1], element[1:2], element[2:]
    if separator != ":":
        raise FieldSetError(f"missing colon: {element}")
    try:
        if kind == "f":
            return element
        if kind == "k":
            return key_element(dict(msgspec.json.decode(content)))
        if kind == "v":
            return value_element(msgspec.json.decode(content))
        return f"i:{int(content)}" if kind == "i" else ""
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise FieldSetError(f"{element}: {error}") from None
