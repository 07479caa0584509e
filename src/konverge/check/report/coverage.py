"""What was tried of what could be tried: writes and crashes, kinds and old views, fields of the custom resource."""

from __future__ import annotations

from typing import Literal

import msgspec

from konverge.check.campaign import Outcome, Performed
from konverge.check.model import Crash, Gap, Lag, LateOwnWrites, Stale
from konverge.check.names import Names
from konverge.check.sentences import doing

Mark = Literal["fine", "finding", "missed", "not tried"]


class Row(msgspec.Struct):
    """One thing that can be hit, and by what it was."""

    name: str
    cells: dict[str, Mark]


class Table(msgspec.Struct):
    title: str
    columns: list[str]
    rows: list[Row]


def tables(outcome: Outcome) -> list[Table]:
    names = Names.of(outcome.base)
    made = [_writes(outcome, names), _views(outcome, names), _fields(outcome)]
    return [table for table in made if table.rows]


def mark(performed: Performed) -> Mark:
    if performed.missed or performed.problem:
        return "missed"
    return "finding" if performed.groups else "fine"


def _writes(outcome: Outcome, names: Names) -> Table:
    """Every write of the reference: was the operator ended right before and right after it?"""
    columns = ["crash after", "crash before", "refused"]
    rows: dict[object, Row] = {}
    run = outcome.reference.run
    for exchange in run.exchanges:
        if exchange.place is not None and exchange.status < 400:
            number = f" ({exchange.place.occurrence})" if exchange.place.occurrence > 1 else ""
            rows[exchange.place] = Row(doing(exchange.place, names, run) + number, dict.fromkeys(columns, "not tried"))
    for performed in outcome.performed:
        for item in performed.plan.perturbations:
            place = getattr(item, "place", None)
            if place in rows:
                column = f"crash {item.when}" if isinstance(item, Crash) else "refused"
                _set(rows[place], column, mark(performed))
    return Table("Writes", columns, list(rows.values()))


def _views(outcome: Outcome, names: Names) -> Table:
    """Every kind that the operator looks at: was it shown old, late, or with a gap?"""
    columns = ["stale", "late", "gap", "own writes late"]
    kinds = {delivery.resource for delivery in outcome.reference.run.deliveries}
    rows = {resource: Row(names.kind(resource), dict.fromkeys(columns, "not tried")) for resource in sorted(kinds)}
    for performed in outcome.performed:
        for item in performed.plan.perturbations:
            column = {Stale: "stale", Lag: "late", Gap: "gap", LateOwnWrites: "own writes late"}.get(type(item))
            row = rows.get(getattr(item, "resource", ""))
            if column is not None and row is not None:
                _set(row, column, mark(performed))
    return Table("Views", columns, list(rows.values()))


def _fields(outcome: Outcome) -> Table:
    """Every field that was changed, and which oracles had something to say."""
    oracles = sorted({group[0] for performed in outcome.performed for group in performed.groups})
    columns = oracles or ["any oracle"]
    rows: dict[str, Row] = {}
    for performed in outcome.performed:
        for step in performed.plan.steps or ():
            if step.about:
                row = rows.setdefault(step.about, Row(step.about, dict.fromkeys(columns, "fine")))
                for group in performed.groups if performed.about == step.about else ():
                    _set(row, group[0], "finding")
    return Table("Fields of the custom resource", columns, sorted(rows.values(), key=lambda row: row.name))


def _set(row: Row, column: str, value: Mark) -> None:
    """A finding counts more than what was fine, and that more than what missed."""
    order = ("not tried", "missed", "fine", "finding")
    if column in row.cells and order.index(value) > order.index(row.cells[column]):
        row.cells[column] = value
