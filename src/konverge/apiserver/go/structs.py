"""Structs as error messages show them.

Where the API server refuses a whole struct, its message prints the *internal* Go struct: Go's field names in Go's
order, every field, null where a pointer or a list is nil. No schema has this; it comes from the struct declarations
(`tools/make_gotypes.py`).

    internal("apps.DeploymentStrategy", strategy)    # {"Type": "Magic", "RollingUpdate": None}

Where an immutable struct was changed, the message has the difference of its two forms (`difference`).
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from konverge.apiserver.go.json import html_safe

_DATA = Path(__file__).parents[1] / "data" / "gotypes.json.gz"
_EMPTY: dict[str, Any] = {"s": "", "i": 0, "b": False, "f": 0, "Q": "0", "P": 0}
"""What an absent value of these types is printed as; anything else is null."""
_UNIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "apiextensions.JSONSchemaPropsOrBool": lambda value: {"allows": value is not False, "schema": _schema(value)},
    "apiextensions.JSONSchemaPropsOrArray": lambda value: {"schema": _schema(value), "jSONSchemas": _list(value)},
    "apiextensions.JSONSchemaPropsOrStringArray": lambda value: {"schema": _schema(value), "property": _list(value)},
}
"""Structs of which JSON shows one member only."""


def _schema(value: Any) -> Any:
    return value if isinstance(value, dict) else None


def _list(value: Any) -> Any:
    return value if isinstance(value, list) else None


@cache
def _types() -> dict[str, list[list[str]]]:
    return json.loads(gzip.decompress(_DATA.read_bytes()))  # type: ignore[no-any-return]


def internal(kind: str, value: Any) -> Any:
    """A value in its internal form; `kind` is a type as the data has it: `batch.SuccessPolicy`, `[]core.Toleration`."""
    if kind.startswith("*"):
        return None if value is None else internal(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [internal(kind[2:], item) for item in value]
    if kind.startswith("{}"):
        return None if value is None else {key: internal(kind[2:], item) for key, item in sorted(value.items())}
    if "." not in kind:
        return _EMPTY.get(kind) if value is None else value
    return _struct(kind, _UNIONS[kind](value) if kind in _UNIONS else value or {})


def field_names(kind: str) -> list[tuple[str, str]]:
    """(name in messages, JSON name) of each field of a struct."""
    return [(name, at) for name, at, _, _ in _types()[kind]]


def _struct(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    source = {**value, **value["metadata"]} if "metadata" in value else value
    members: dict[str, Any] = {}
    for name, at, omitted, field_kind in _types()[kind]:
        if at in ("kind", "apiVersion") and omitted:
            continue
        member = internal(field_kind, source.get(at))
        if not omitted or (member is not None and member not in ("", 0, [], {})):
            members[name] = member
    return members


def difference(old: Any, new: Any) -> str:
    """A unified diff of indented JSON, without the names of files. Upstream: diff.Diff (apimachinery/pkg/util/diff)."""
    return "".join(list(difflib.unified_diff(_lines(old), _lines(new), n=3))[2:])


def _lines(value: Any) -> list[str]:
    text = html_safe(json.dumps(value, indent=1, ensure_ascii=False))
    return [f"{line}\n" for line in text.split("\n")]
