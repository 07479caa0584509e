"""The databases that the samples of Nacos name, and others in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Engine = Literal["mysql", "postgresql"]
USERNAME, PASSWORD, NAME = "nacos", "change-me", "nacos"
"""As in the samples."""


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database is, and who may log in."""

    engine: Engine
    host: str
    port: int
    username: str = USERNAME
    password: str = PASSWORD
    name: str = NAME


DEFAULTS = (
    Database(engine="mysql", host="mysql.default.svc", port=3306),
    Database(engine="postgresql", host="postgres.default.svc", port=5432),
)
"""What the samples name."""


def given(databases: Sequence[Database]) -> list[Database]:
    """Those that were named, and the samples' own where no other of their engine was."""
    named = {database.engine for database in databases}
    return [*databases, *(default for default in DEFAULTS if default.engine not in named)]
