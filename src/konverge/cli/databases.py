"""The databases that `konverge up` simulates for Nacos: those of the samples, or those that `--database` names.

    --database mysql://nacos:secret@db.example.com:3306/nacos

The samples of that engine then name this server, so that what converges here can be applied where it really runs.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from konverge.sim.sample_databases import Database, Engine

_PORTS: dict[str, int] = {"mysql": 3306, "postgresql": 5432}
FORM = "mysql://USER:PASSWORD@HOST:PORT/NAME or postgresql://…"


def database(text: str) -> Database:
    """The value of `--database`. What is left out is as in the samples.

    >>> database("postgresql://db.example.com").port
    5432
    """
    from konverge.sim.sample_databases import NAME, PASSWORD, USERNAME, Database

    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{without_password(text)}: {error}; use {FORM}") from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{without_password(text)!r} is not a database: use {FORM}")
    engine: Engine = "mysql" if parts.scheme == "mysql" else "postgresql"
    return Database(
        engine=engine,
        host=parts.hostname,
        port=port or _PORTS[engine],
        username=unquote(parts.username or USERNAME),
        password=unquote(parts.password or PASSWORD),
        name=unquote(parts.path.strip("/")) or NAME,
    )


def without_password(text: str) -> str:
    """A text with the password of its URL left out: errors end up in logs, and records on screens."""
    if "://" not in text:
        return text
    before, at, after = text.rpartition("@")
    scheme, slashes, user = before.partition("://")
    return f"{scheme}{slashes}{user.partition(':')[0]}:…{at}{after}" if at else text


def in_samples(samples: Iterable[dict[str, Any]], databases: Sequence[Database]) -> list[dict[str, Any]]:
    """The samples with the first database of their engine in place of their own."""
    changed = [copy.deepcopy(sample) for sample in samples]
    for engine in _PORTS:
        chosen = next((database for database in databases if database.engine == engine), None)
        if chosen is not None:
            _name_database(changed, chosen)
    return changed


def _name_database(samples: list[dict[str, Any]], chosen: Database) -> None:
    secrets = {sample["metadata"]["name"]: sample for sample in samples if sample["kind"] == "Secret"}
    for spec in (sample["spec"] for sample in samples if sample["kind"] == "Nacos"):
        if (spec.get("database") or {}).get("type") != chosen.engine:
            continue
        if chosen.engine == "mysql":
            fields, reference = spec["database"], "mysqlCredentialsSecretRef"
            fields |= {"mysqlHost": chosen.host, "mysqlPort": str(chosen.port), "mysqlDb": chosen.name}
        else:
            fields, reference = spec["postgres"], "credentialsSecretRef"
            fields |= {"host": chosen.host, "port": str(chosen.port), "database": chosen.name}
        credentials = {"username": chosen.username, "password": chosen.password}
        secrets[fields[reference]["name"]]["stringData"] = credentials
