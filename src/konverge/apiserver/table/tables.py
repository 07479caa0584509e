"""`Tables`: the server's table maker, for built-in kinds by declaration and for custom ones by their definitions."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.registry import Served
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.crd.serving.manager import Manager

Cell = Callable[[Obj], Any]
Row = Mapping[str, Cell]
"""A kind: its cells by the names of their columns, in order."""

_MODULES = {
    "": "core",
    "events.k8s.io": "core",
    "apps": "workloads",
    "autoscaling": "workloads",
    "batch": "workloads",
    "policy": "workloads",
    "discovery.k8s.io": "networking",
    "networking.k8s.io": "networking",
    "storage.k8s.io": "storage",
}
_PLAIN = "cluster"
"""The module of all other groups."""


class Tables:
    """Columns and rows of every kind."""

    def __init__(self, definitions: Manager) -> None:
        self._definitions = definitions

    def columns(self, served: Served) -> list[Obj]:
        if served.custom:
            return [definition for definition, _ in self._custom(served)]
        return _columns(_key(served))

    def rows(self, served: Served, objects: Sequence[Obj], *, listed: bool = False) -> list[Obj]:
        """A row for each object. `listed`: they are a list, in which rows may depend on each other."""
        if served.custom:
            cells = [cell for _, cell in self._custom(served)]
            return [{"cells": [cell(obj) for cell in cells]} for obj in objects]
        return _rows(_key(served), objects, listed)

    def ordered(self, served: Served, objects: list[Obj]) -> list[Obj]:
        """The objects of a list in the order in which their table shows them."""
        order = None if served.custom else _module(served.resource.group, "ORDER").get(served.resource.kind)
        return objects if order is None else sorted(objects, key=order)

    def _custom(self, served: Served) -> list[tuple[Obj, Cell]]:
        definition = self._definitions.find(served)
        return definition.columns if definition is not None else []


def _key(served: Served) -> tuple[str, str]:
    return served.resource.group, served.resource.kind


def _rows(key: tuple[str, str], objects: Sequence[Obj], listed: bool) -> list[Obj]:
    row, conditions, mark = _declared(*key)
    rows: list[Obj] = []
    for obj in objects:
        shown: Obj = {"cells": [cell(obj) for cell in row.values()]}
        if conditions is not None and (reported := conditions(obj)):
            shown["conditions"] = reported
        rows.append(shown)
    if mark is not None and listed:
        mark(objects, rows)
    return rows


@cache
def _declared(group: str, kind: str) -> tuple[Row, Callable[[Obj], list[Obj]] | None, Callable[..., None] | None]:
    """The cells of a kind, the function for a row's conditions, and the function that marks rows of a list."""
    row: Row | None = _module(group, "KINDS").get(kind)
    if row is None:
        row = import_module("konverge.apiserver.table.cluster").PLAIN
    return row, _module(group, "CONDITIONS").get(kind), _module(group, "MARKS").get(kind)


def _module(group: str, part: str) -> dict[str, Any]:
    """A table of the module of a group: `KINDS`, `CONDITIONS`, `MARKS` or `ORDER`, by kind."""
    module = import_module(f"konverge.apiserver.table.{_MODULES.get(group, _PLAIN)}")
    return getattr(module, part, {})


@cache
def _data() -> dict[str, list[list[Any]]]:
    packed = resources.files("konverge.apiserver").joinpath("data/tables.json.gz").read_bytes()
    columns: dict[str, list[list[Any]]] = msgspec.json.decode(gzip.decompress(packed))
    return columns


@cache
def _columns(key: tuple[str, str]) -> list[Obj]:
    data = _data()
    return [
        {"name": name, "type": kind, "format": form, "description": text, "priority": priority}
        for name, kind, form, priority, text in data.get("/".join(key), data[""])
    ]
