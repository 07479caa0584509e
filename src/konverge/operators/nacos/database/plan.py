"""The changes that a database needs: a pure decision from its tables, the schema, and the policy.

Changes only ever add. A table of the right name that lacks a column which Nacos had from the start belongs to another
application: then nothing is touched. A database that lacks tables (an earlier attempt ended half-way, or the servers
were upgraded from 2.4) is completed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.scripts import SENTINEL, Schema, Statement
from konverge.operators.nacos.database.target import Policy

Layout = Mapping[str, frozenset[str]]
"""Tables and their columns."""


class Plan(msgspec.Struct, frozen=True):
    """Run `statements`, then record `version`. An empty plan has no statements, and changes nothing."""

    statements: tuple[Statement, ...]
    version: int
    message: str
    first_users: bool = False
    """The table of users is created by this plan, or was by an earlier attempt that did not finish."""


def decide(layout: Layout, recorded: int | None, schema: Schema, policy: Policy, wanted: int) -> Plan:
    """Raises DatabaseError where the policy forbids what would be needed, or nothing sensible can be done."""
    missing = _missing(layout, schema)
    if policy == "Never":
        _refuse_missing(missing)
        return Plan((), recorded or 0, "the policy is Never, and all tables exist")
    if recorded is not None and recorded > wanted and policy != "IfNotPresent":
        raise DatabaseError("VersionMismatch", _newer(recorded, wanted))
    begun = SENTINEL in layout and recorded is None
    if not (missing or begun) and (policy == "IfNotPresent" or (policy == "BumpVersion" and recorded == wanted)):
        return Plan((), recorded or 0, _untouched(recorded))
    return Plan(
        _needed(layout, schema, everything=begun or policy != "IfNotPresent"),
        max(recorded or 0, wanted),
        _summary(layout, missing, schema),
        first_users=begun or "users" not in layout,
    )


def _missing(layout: Layout, schema: Schema) -> list[str]:
    """Names of tables and of columns (table.column) to be added."""
    addable = schema.can_add()
    missing: list[str] = []
    foreign: list[str] = []
    for table, columns in schema.needs().items():
        if table not in layout:
            missing.append(table)
            continue
        for column in sorted(columns - layout[table]):
            (missing if (table, column) in addable else foreign).append(f"{table}.{column}")
    if foreign:
        raise DatabaseError("SchemaBroken", _foreign(foreign))
    return missing


def _needed(layout: Layout, schema: Schema, *, everything: bool) -> tuple[Statement, ...]:
    present = {table: set(columns) for table, columns in layout.items()}
    chosen = []
    for statement in schema.statements:
        if statement.adds:
            wanted = statement.adds not in present[statement.table]
        elif statement.table not in layout:
            wanted = True
            present.setdefault(statement.table, set()).update(statement.columns)
        else:
            wanted = everything  # says IF NOT EXISTS: an index may be missing
        if wanted:
            chosen.append(statement)
    return tuple(chosen)


def _refuse_missing(missing: list[str]) -> None:
    if missing:
        what = f"{_some(missing)} missing, and the policy is Never"
        raise DatabaseError("SchemaMissing", f"{what}: create the schema, or set the policy to IfNotPresent")


def _foreign(foreign: list[str]) -> str:
    tables = sorted({name.partition(".")[0] for name in foreign})
    return (
        f"the database has tables of another application in the place of {', '.join(tables)} "
        f"({_some(foreign)} missing): give Nacos a database of its own, or restore these tables"
    )


def _newer(recorded: int, wanted: int) -> str:
    return (
        f"the database has schema version {recorded}, and the resource asks for {wanted}: nothing was changed; "
        f"set schemaVersion to {recorded} or more"
    )


def _untouched(recorded: int | None) -> str:
    return (
        "all tables exist, not created by this operator"
        if recorded is None
        else f"schema version {recorded} is in place"
    )


def _summary(layout: Layout, missing: list[str], schema: Schema) -> str:
    if not missing:
        return "the schema was applied again"
    if not any(table in layout for table in schema.needs()):
        return "the schema was created"
    return f"an incomplete schema was completed: {_some(missing)} new"


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"
