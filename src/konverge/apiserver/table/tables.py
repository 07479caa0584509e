"""`Tables`: the server's table maker, for built-in kinds by declaration and for custom ones by their definitions."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import data_files
from konverge.apiserver.registry import Served
from konverge.apiserver.strategy import Obj
from konverge.apiserver.table import cells
from konverge.apiserver.table.cells import Cell

if TYPE_CHECKING:
    from konverge.apiserver.crd.serving.manager import Manager


class Tables:
    """Columns and rows of every kind."""

    def __init__(self, definitions: Manager) -> None:
        self._definitions = definitions

    def columns(self, served: Served) -> list[Obj]:
        if served.custom:
            return [definition for definition, _ in self._custom(served)]
        return _columns(served.resource.group, served.resource.kind)

    def rows(self, served: Served, objects: Sequence[Obj], *, listed: bool = False) -> list[Obj]:
        """A row for each object. `listed`: they are a list, in which rows may depend on each other."""
        if served.custom:
            cells = [cell for _, cell in self._custom(served)]
            return [{"cells": [cell(obj) for cell in cells]} for obj in objects]
        return _rows(served.resource.kind, objects, listed)

    def ordered(self, served: Served, objects: list[Obj]) -> list[Obj]:
        """The objects of a list in the order in which their table shows them."""
        order = None if served.custom else _declared(served.resource.kind).get("@order")
        return objects if order is None else sorted(objects, key=order)

    def _custom(self, served: Served) -> list[tuple[Obj, Cell]]:
        definition = self._definitions.find(served)
        return definition.columns if definition is not None else []


def _rows(kind: str, objects: Sequence[Obj], listed: bool) -> list[Obj]:
    declared = _declared(kind)
    row, conditions, mark = cells_of(kind), declared.get("@conditions"), declared.get("@mark")
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
def cells_of(kind: str) -> Mapping[str, Cell]:
    """The cells of a kind by the names of their columns, in order."""
    return {column: cell for column, cell in _declared(kind).items() if not column.startswith("@")}


@cache
def _declared(kind: str) -> Mapping[str, Callable[..., Any]]:
    """The entry of a kind: its cells and, behind an @, the function for a row's conditions, the one that marks rows of
    a list, and the key by which a list is sorted."""
    module, lines = _entries().get(kind) or _entries()["-"]
    functions = import_module(f"konverge.apiserver.table.{module}")
    return {column: _cell(functions, text) for column, _, text in (line.partition(": ") for line in lines)}


@cache
def _entries() -> dict[str, tuple[str, list[str]]]:
    """The data file: a kind's module, and the lines of its entry."""
    entries = [(heading.split(), lines) for heading, lines in data_files.read("table_cells.txt").items()]
    return {kind: (module, lines) for (module, *kinds), lines in entries for kind in kinds}


def _cell(functions: object, text: str) -> Callable[..., Any]:
    if text.startswith("."):
        path, _, default = text[1:].partition(" = ")
        return cells.at(path, msgspec.json.decode(default) if default else "")
    name, _, arguments = text.partition("(")
    function: Callable[..., Any] = getattr(functions, name, None) or getattr(cells, name)
    return function(*arguments[:-1].split(", ")) if arguments else function


@cache
def _data() -> dict[str, list[list[Any]]]:
    packed = resources.files("konverge.apiserver").joinpath("data/tables.json.gz").read_bytes()
    columns: dict[str, list[list[Any]]] = msgspec.json.decode(gzip.decompress(packed))
    return columns


@cache
def _columns(group: str, kind: str) -> list[Obj]:
    data = _data()
    return [
        {"name": name, "type": type_, "format": form, "description": text, "priority": priority}
        for name, type_, form, priority, text in data.get(f"{group}/{kind}", data[""])
    ]
