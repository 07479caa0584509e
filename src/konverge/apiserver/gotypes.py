"""How Go writes the built-in types: which empty values are there, and what structs look like inside messages.

The JSON of the real server is what Go's encoder makes of a struct. A plain number that is 0 is omitted where the field
says `omitempty`, but a *pointer* to 0 is kept; a nested struct is never omitted (`status: {}`); a list without
`omitempty` is `null`. OpenAPI tells none of this, so it comes from the struct declarations themselves
(`tools/make_gotypes.py`).

    shaper("apps/v1.DaemonSet")(obj)                 # obj, as Go would have written it
    zero("apps/v1.DaemonSetStatus")                  # {"currentNumberScheduled": 0, …}
    ordered("autoscaling/v1.MetricSpec", metric)     # a copy with the fields in Go's order
    internal("apps.DeploymentStrategy", strategy)    # {"Type": "Magic", "RollingUpdate": None}: a value in a message
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

Shaper = Callable[[dict[str, Any]], None]

_EMPTY: dict[str, Any] = {"s": "", "i": 0, "b": False, "f": 0, "Q": "0", "P": 0}
"""What an absent field becomes when it is always written; anything else becomes null."""

_LEFT_ALONE = {"kind", "apiVersion", "managedFields"}
"""The request path owns these: an empty list of managedFields is a command there."""


@cache
def _types(which: str) -> dict[str, list[list[str]]]:
    packed = resources.files("konverge.apiserver").joinpath(f"data/gotypes-{which}.json.gz").read_bytes()
    return json.loads(gzip.decompress(packed))  # type: ignore[no-any-return]


@cache
def shaper(name: str) -> Shaper:
    """Brings an object of this type (`apps/v1.Deployment`) into the form in which Go writes it, in place."""
    plans: list[tuple[str, bool, Any, Shaper | None, str]] = []
    for field, flags, kind in _types("external")[name]:
        plans.append((field, *_plan(flags, kind)))
    fields = tuple(plan for plan in plans if plan[0] not in _LEFT_ALONE)

    def shape(obj: dict[str, Any]) -> None:
        for field, omitted, empty, inner, nesting in fields:
            value = obj.get(field)
            if value is None:
                if not omitted:
                    obj[field] = _absent(empty, inner, nesting)
                elif field in obj:
                    del obj[field]
            elif inner is not None and (value or nesting in ("", "*")):
                _walk(value, inner, nesting)
            elif omitted and not value and nesting[:1] != "*":
                del obj[field]

    return shape


def _plan(flags: str, kind: str) -> tuple[bool, Any, Shaper | None, str]:
    """(omitted when empty, the empty value, the shaper of nested structs, how they are nested)."""
    base = kind.lstrip("*[]{}")
    nesting = kind[: len(kind) - len(base)]
    struct = "." in base
    omitted = bool(flags) and not (struct and not nesting and "z" not in flags) and not (base == "P" and not nesting)
    inner = _lazy(base) if struct else None
    return omitted, None if nesting else _EMPTY.get(base), inner, nesting


def _lazy(name: str) -> Shaper:
    """Types nest in themselves (JSONSchemaProps), so inner shapers are made when they are first needed."""
    return lambda obj: shaper(name)(obj)


def _absent(empty: Any, inner: Shaper | None, nesting: str) -> Any:
    if inner is None or nesting:
        return empty
    made: dict[str, Any] = {}
    inner(made)
    return made


def _walk(value: Any, inner: Shaper, nesting: str) -> None:
    if isinstance(value, dict):
        if not nesting.startswith("{}"):
            inner(value)
            return
        for entry in value.values():
            _walk(entry, inner, nesting[2:])
    elif isinstance(value, list):
        for item in value:
            _walk(item, inner, nesting[2:])


def zero(name: str) -> dict[str, Any]:
    """An empty struct of this type as Go writes it; a fresh one each time."""
    made: dict[str, Any] = {}
    shaper(name)(made)
    return made


def ordered(kind: str, value: Any) -> Any:
    """A copy of a shaped value whose fields stand in the order of the struct: JSON text that is compared as text."""
    base = kind.lstrip("*[]{}")
    if "." not in base or value is None:
        return value
    if isinstance(value, list):
        return [ordered(base, item) for item in value]
    fields = _types("external")[base]
    return {name: ordered(inner, value[name]) for name, _, inner in fields if name in value}


def internal(kind: str, value: Any) -> Any:
    """A value as the server's internal struct, for a message: Go's names and order, every field, null where nil.

    `kind` is a type in the compact form of the data: `batch.SuccessPolicy`, `[]core.PersistentVolumeClaim`.
    """
    if kind.startswith("*"):
        return None if value is None else internal(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [internal(kind[2:], item) for item in value]
    if kind.startswith("{}"):
        return None if value is None else {key: internal(kind[2:], item) for key, item in sorted(value.items())}
    if "." not in kind:
        return _EMPTY.get(kind) if value is None else value
    return _internal_struct(kind, value or {})


def _internal_struct(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    if kind.startswith("meta."):
        return {field: value[field] for field, _, _ in _types("external")[kind] if field in value}
    source = value
    if "metadata" in value:
        source = {**value, **value["metadata"]}
    found: dict[str, Any] = {}
    for name, at, flags, field_kind in _types("internal")[kind]:
        member = internal(field_kind, source.get(at))
        if flags and (member is None or member in ("", 0, [], {}) or at in ("kind", "apiVersion")):
            continue
        found[name] = member
    return found
