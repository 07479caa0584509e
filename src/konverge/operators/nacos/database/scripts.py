"""The SQL that ships with the operator, and how it is read.

The files in `sql/` are the one description of the schema: they are run as they are, and what tables and columns must
be there is read out of them. They hold three forms of statements: CREATE TABLE IF NOT EXISTS, CREATE INDEX IF NOT
EXISTS, and ALTER TABLE … ADD COLUMN, which is run where the column is missing. A script for other programs (psql, the
mysql client in a Job) guards the last form in the way of its engine, and can therefore be run again and again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources

import msgspec

from konverge.operators.nacos.database.contract import Engine
from konverge.operators.nacos.database.lines import Family, family_of

SENTINEL = "nacos_schema_version"

_PART = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*(?:\n|$)|;|[^'\"`;-]+|.", re.DOTALL)
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*)\)[^()]*$", re.DOTALL)
_INDEX = re.compile(r"CREATE INDEX IF NOT EXISTS \w+ ON (\w+) ")
_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) ")
_FIRST_WORD = re.compile(r"\s*`?(\w+)")
_NO_COLUMN = frozenset({"CONSTRAINT", "UNIQUE", "PRIMARY", "KEY", "INDEX"})


class Statement(msgspec.Struct, frozen=True):
    """One statement. `columns`: those that it gives to its table; `adds`: it adds one column to a table that exists."""

    text: str
    table: str
    columns: frozenset[str] = frozenset()
    adds: str = ""


class Schema(msgspec.Struct, frozen=True):
    """Everything that one family needs in one engine, in the order in which it is made."""

    statements: tuple[Statement, ...]

    def needs(self) -> dict[str, frozenset[str]]:
        """Tables and their columns; the sentinel is ours, not a part of Nacos."""
        needed: dict[str, frozenset[str]] = {}
        for statement in self.statements:
            if statement.table != SENTINEL:
                needed[statement.table] = needed.get(statement.table, frozenset()) | statement.columns
        return needed

    def can_add(self) -> frozenset[tuple[str, str]]:
        """(table, column) that later releases introduced, and that old tables may lack."""
        return frozenset((statement.table, statement.adds) for statement in self.statements if statement.adds)


def split(script: str) -> list[str]:
    """The statements of a script, without comments; quotes hide semicolons and dashes."""
    found, current = [], ""
    for part in _PART.findall(script):
        if part == ";":
            found.append(current.strip())
            current = ""
        elif not part.startswith("--"):
            current += part
    return [statement for statement in (*found, current.strip()) if statement]


def parse(script: str) -> tuple[Statement, ...]:
    return tuple(_statement(text) for text in split(script))


def _statement(text: str) -> Statement:
    if found := _TABLE.match(text):
        return Statement(text, found[1], frozenset(_columns(found[2])))
    if found := _COLUMN.match(text):
        return Statement(text, found[1], frozenset({found[2]}), found[2])
    if found := _INDEX.match(text):
        return Statement(text, found[1])
    raise ValueError(f"not a statement of a schema: {text[:80]}")


def _columns(body: str) -> Iterator[str]:
    for line in body.splitlines():
        found = _FIRST_WORD.match(line)
        if found and found[1] not in _NO_COLUMN:
            yield found[1]


def _file(*path: str) -> str:
    return resources.files(__package__).joinpath("sql", *path).read_text(encoding="utf-8")


@functools.cache
def schema(engine: Engine, family: Family) -> Schema:
    """What a database of this engine needs. Read from the package once."""
    names = ("sentinel.sql", "common.sql", f"{family}.sql")
    return Schema(tuple(statement for name in names for statement in parse(_file(engine, name))))


def default_admin() -> list[str]:
    """Statements that write the user nacos/nacos into a database without users; the same in both engines."""
    return split(_file("default-admin.sql"))


def postgres_script(line: str, *, default_admin: bool = False) -> str:
    """For psql: everything a line needs, to be run any number of times."""
    return _script("postgresql", line, default_admin)


def mysql_script(line: str, *, default_admin: bool = False) -> str:
    """For the mysql client, with a database selected: everything a line needs, to be run any number of times."""
    return _script("mysql", line, default_admin)


def _script(engine: Engine, line: str, with_admin: bool) -> str:
    guard = _guarded_postgres if engine == "postgresql" else _guarded_mysql
    texts = [
        guard(statement) if statement.adds else statement.text
        for statement in schema(engine, family_of(line)).statements
    ]
    return "".join(f"{text};\n\n" for text in (*texts, *(default_admin() if with_admin else ())))


def _guarded_postgres(statement: Statement) -> str:
    return statement.text.replace(" ADD COLUMN ", " ADD COLUMN IF NOT EXISTS ", 1)


def _guarded_mysql(statement: Statement) -> str:
    """MySQL has no ADD COLUMN IF NOT EXISTS: the statement is made where it is needed, and is empty elsewhere."""
    where = f"table_schema = DATABASE() AND table_name = '{statement.table}' AND column_name = '{statement.adds}'"
    change = statement.text.replace("'", "''")
    return (
        f"SET @known = (SELECT COUNT(*) FROM information_schema.columns WHERE {where});\n"  # noqa: S608 - own names
        f"SET @change = IF(@known = 0, '{change}', 'DO 0');\n"
        "PREPARE change_once FROM @change;\nEXECUTE change_once;\nDEALLOCATE PREPARE change_once"
    )
