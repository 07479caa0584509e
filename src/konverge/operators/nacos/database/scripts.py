"""The SQL that ships with the operator, and how it is read.

The files in `sql/` are the only description of the schema: they are run as they are, and the tables and columns that
must exist are read from them. They hold three forms of statements: CREATE TABLE IF NOT EXISTS, CREATE INDEX IF NOT
EXISTS, and ALTER TABLE … ADD COLUMN, which is run where the column is missing. A script for other programs (psql, the
mysql client in a Job) guards the last form in the way of its engine, so it can be run any number of times.

A line of releases is "major.minor". There are two families of schemas: until 2.4 (with aggregated configurations), and
since 2.5, which all of 3.x shares (with gray releases).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import Literal

import msgspec

from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.target import Engine

Family = Literal["until-2.4", "since-2.5"]

_LINE = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?![\d])")


def family_of(line: str) -> Family:
    """Which schema servers of a line need; patch levels and suffixes are ignored."""
    match = _LINE.match(line)
    if match is None:
        raise DatabaseError("InvalidTarget", f'"{line[:40]}" is not a line of Nacos: use major and minor, as in "2.4"')
    return "since-2.5" if (int(match[1]), int(match[2])) >= (2, 5) else "until-2.4"


SENTINEL = "nacos_schema_version"

_PART = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*(?:\n|$)|;|[^'\"`;-]+|.", re.DOTALL)
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*)\)[^()]*$", re.DOTALL)
_INDEX = re.compile(r"CREATE INDEX IF NOT EXISTS \w+ ON (\w+) ")
_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) ")
_FIRST_WORD = re.compile(r"\s*`?(\w+)")
_NO_COLUMN = frozenset({"CONSTRAINT", "UNIQUE", "PRIMARY", "KEY", "INDEX"})


class Statement(msgspec.Struct, frozen=True):
    """One statement. `columns`: those that it adds to its table; `adds`: the one that it adds to an existing table."""

    text: str
    table: str
    columns: frozenset[str] = frozenset()
    adds: str = ""


class Schema(msgspec.Struct, frozen=True):
    """Everything that one family needs in one engine, in the order of creation."""

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
    statements, current = [], ""
    for part in _PART.findall(script):
        if part == ";":
            statements.append(current.strip())
            current = ""
        elif not part.startswith("--"):
            current += part
    return [statement for statement in (*statements, current.strip()) if statement]


def parse(script: str) -> tuple[Statement, ...]:
    return tuple(_statement(text) for text in split(script))


def _statement(text: str) -> Statement:
    if match := _TABLE.match(text):
        return Statement(text, match[1], frozenset(_columns(match[2])))
    if match := _COLUMN.match(text):
        return Statement(text, match[1], frozenset({match[2]}), match[2])
    if match := _INDEX.match(text):
        return Statement(text, match[1])
    raise ValueError(f"not a statement of a schema: {text[:80]}")


def _columns(body: str) -> Iterator[str]:
    for line in body.splitlines():
        word = _FIRST_WORD.match(line)
        if word and word[1] not in _NO_COLUMN:
            yield word[1]


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
    """For psql: everything that a line needs; it can be run any number of times."""
    return _script("postgresql", line, default_admin)


def mysql_script(line: str, *, default_admin: bool = False) -> str:
    """For the mysql client, with a database selected: everything that a line needs; can be run any number of times."""
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
    """MySQL has no ADD COLUMN IF NOT EXISTS: the statement is prepared where the column is missing, else empty."""
    where = f"table_schema = DATABASE() AND table_name = '{statement.table}' AND column_name = '{statement.adds}'"
    change = statement.text.replace("'", "''")
    return (
        f"SET @known = (SELECT COUNT(*) FROM information_schema.columns WHERE {where});\n"  # noqa: S608 - own names
        f"SET @change = IF(@known = 0, '{change}', 'DO 0');\n"
        "PREPARE change_once FROM @change;\nEXECUTE change_once;\nDEALLOCATE PREPARE change_once"
    )
