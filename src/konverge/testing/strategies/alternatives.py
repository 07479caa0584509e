"""`allOf`, `anyOf`, `oneOf` and `not` of a schema, worked into it: each result is a schema without them.

They only narrow values, and the result need not be exact: what is drawn is validated afterwards. It has to be good
enough that most of it passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

Schema = Mapping[str, Any]

MOST = 16
"""Combinations that are drawn from."""
_HIGHEST = frozenset(("minimum", "minLength", "minItems", "minProperties"))
_LOWEST = frozenset(("maximum", "maxLength", "maxItems", "maxProperties"))


def alternatives(schema: Schema) -> list[dict[str, Any]]:
    """
    >>> schema = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    >>> [sorted(choice["properties"]) for choice in alternatives(schema)]
    [['a'], ['b']]
    """
    base = {key: value for key, value in schema.items() if key not in ("allOf", "anyOf", "oneOf", "not")}
    for part in schema.get("allOf") or ():
        base = merged(base, part)
    if schema.get("x-kubernetes-int-or-string"):
        return [base]
    base = _without(base, ((schema.get("not") or {}).get("required") or []))
    any_of = [merged(base, branch) for branch in schema.get("anyOf") or ()] or [base]
    branches = schema.get("oneOf") or ()
    one_of = [(branch, _others(branches, branch)) for branch in branches] or [({}, [])]
    return [_without(merged(a, branch), others) for a, (branch, others) in product(any_of, one_of)][:MOST]


def _others(branches: Any, branch: Schema) -> list[str]:
    """Fields by which the other branches are recognized."""
    mine = set(branch.get("required") or ())
    return [name for other in branches for name in other.get("required") or () if name not in mine]


def _without(schema: Schema, names: list[str]) -> dict[str, Any]:
    required = schema.get("required") or ()
    dropped = {name for name in names if name not in required}
    if not dropped or "properties" not in schema:
        return dict(schema)
    return {**schema, "properties": {n: child for n, child in schema["properties"].items() if n not in dropped}}


def merged(schema: Schema, part: Schema) -> dict[str, Any]:
    """A schema narrowed by a part: the stricter limits of both, the fields that either requires.

    >>> merged({"type": "integer", "minimum": 1}, {"minimum": 5, "maximum": 9})
    {'type': 'integer', 'minimum': 5, 'maximum': 9}
    """
    result = dict(schema)
    for key, value in part.items():
        present = result.get(key)
        if key == "properties":
            result[key] = {**(present or {}), **{n: merged((present or {}).get(n, {}), v) for n, v in value.items()}}
        elif key == "required":
            result[key] = list(dict.fromkeys((*(present or ()), *value)))
        elif key == "items" and present is not None:
            result[key] = merged(present, value)
        elif key == "enum" and present is not None:
            result[key] = [item for item in present if item in value]
        elif key in _HIGHEST and present is not None:
            result[key] = max(present, value)
        elif key in _LOWEST and present is not None:
            result[key] = min(present, value)
        else:
            result[key] = value
    return result
