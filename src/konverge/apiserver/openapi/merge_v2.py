"""Documents of OpenAPI v2 from several servers as one: each names its definitions as it likes.

A definition that two servers have under one name is one if both say the same of it; else the later one gets a new name
(`NAME_v2`), and whatever refers to it does so by that name. What differs in nothing but the kinds that a definition
stands for (DeleteOptions stands for one in every group) is the same, and stands for all of them.

Upstream: kube-openapi/pkg/aggregator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from konverge.apiserver.strategy import Obj

_KINDS = "x-kubernetes-group-version-kind"
_DEFINITIONS, _PARAMETERS = "#/definitions/", "#/parameters/"


def restricted(spec: Obj, prefix: str) -> Obj:
    """The paths below a prefix, and the definitions that are not there for other paths alone."""
    definitions = spec.get("definitions") or {}
    paths = {path: item for path, item in (spec.get("paths") or {}).items() if path.startswith(prefix)}
    elsewhere = _used(spec.get("paths") or {}, definitions) - _used(paths, definitions)
    kept = {name: schema for name, schema in definitions.items() if name not in elsewhere}
    return {"paths": paths, "definitions": kept, "parameters": spec.get("parameters") or {}}


def merge(into: Obj, spec: Obj) -> None:
    """Add what another server says. A path that is there already stays as it is."""
    added = spec["paths"].keys() - into["paths"].keys()
    if not added:
        return
    if len(added) < len(spec["paths"]):
        spec = _without(spec, spec["paths"].keys() - added)
    renames = {
        **_renames(_DEFINITIONS, into["definitions"], spec["definitions"], _alike),
        **_renames(_PARAMETERS, into["parameters"], spec["parameters"], lambda one, other: one == other),
    }
    for name, schema in spec["definitions"].items():
        new = renames.get(_DEFINITIONS + name, _DEFINITIONS + name).removeprefix(_DEFINITIONS)
        known = into["definitions"].get(new)
        into["definitions"][new] = _renamed(schema, renames) if known is None else _for_all_kinds(known, schema)
    for name, parameter in spec["parameters"].items():
        new = renames.get(_PARAMETERS + name, _PARAMETERS + name).removeprefix(_PARAMETERS)
        into["parameters"].setdefault(new, _renamed(parameter, renames))
    into["paths"] |= {path: _renamed(item, renames) for path, item in spec["paths"].items()}


def _without(spec: Obj, paths: Any) -> Obj:
    kept = {path: item for path, item in spec["paths"].items() if path not in paths}
    elsewhere = _used(spec["paths"], spec["definitions"]) - _used(kept, spec["definitions"])
    definitions = {name: schema for name, schema in spec["definitions"].items() if name not in elsewhere}
    return {**spec, "paths": kept, "definitions": definitions}


# --- references


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):  # else a property of this name
            yield target
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _used(paths: Obj, definitions: Obj) -> set[str]:
    """The names of the definitions that paths refer to, also by others."""
    used: set[str] = set()
    waiting: list[Any] = [paths]
    while waiting:
        for target in _references(waiting.pop()):
            name = target.removeprefix(_DEFINITIONS)
            if name != target and name not in used:
                used.add(name)
                waiting.append(definitions.get(name))
    return used


def _renamed(value: Any, renames: dict[str, str]) -> Any:
    """With the new names of what it refers to; never the object itself, which others may hold."""
    if isinstance(value, dict):
        return {
            key: renames.get(part, part) if key == "$ref" and isinstance(part, str) else _renamed(part, renames)
            for key, part in value.items()
        }
    return [_renamed(part, renames) for part in value] if isinstance(value, list) else value


# --- names


def _renames(prefix: str, known: Obj, new: Obj, alike: Callable[[Obj, Obj], bool]) -> dict[str, str]:
    """From each reference that would mean something else to the one that is to be used."""
    renames: dict[str, str] = {}
    taken: set[str] = set()
    for name, value in new.items():
        if name in known and not alike(known[name], value):
            free = _free_name(name, value, known, {*new, *taken}, alike)
            renames[prefix + name] = prefix + free
            taken.add(free)
    return renames


def _free_name(name: str, value: Obj, known: Obj, taken: set[str], alike: Callable[[Obj, Obj], bool]) -> str:
    """A name that nothing has, or under which the same was added before."""
    number = 2
    while (other := known.get(f"{name}_v{number}")) is not None:
        if alike(other, value):
            return f"{name}_v{number}"
        number += 1
    while f"{name}_v{number}" in known or f"{name}_v{number}" in taken:
        number += 1
    return f"{name}_v{number}"


def _alike(one: Obj, other: Obj) -> bool:
    return _without_kinds(one) == _without_kinds(other)


def _without_kinds(schema: Obj) -> Obj:
    return {key: value for key, value in schema.items() if key != _KINDS}


def _for_all_kinds(known: Obj, other: Obj) -> Obj:
    """A definition that stands for the kinds of both."""
    kinds = known.get(_KINDS) or []
    added = [kind for kind in other.get(_KINDS) or () if kind not in kinds]
    return {**known, _KINDS: [*kinds, *added]} if added else known
