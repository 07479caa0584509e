"""The databases behind Nacos: schema, admin user, checks; PostgreSQL, MySQL and MariaDB.

Refinements of the first sketch of this seam: `rotate_admin` also takes a plain `password` (compared with the stored
hash, so that the same Secret never rewrites the row) and the `previous` admin to remove; `ensure_schema` has
`default_admin` for servers before 2.4; `bcrypt_hash` is awaited. `line_of` reads the line out of an image reference.
"""

from __future__ import annotations

from konverge.operators.nacos.database.contract import (
    AdminOutcome,
    Databases,
    Engine,
    Policy,
    SchemaOutcome,
    Target,
    Tls,
    TlsMode,
)
from konverge.operators.nacos.database.errors import WRONG_INPUT, DatabaseError, Reason
from konverge.operators.nacos.database.lines import line_of
from konverge.operators.nacos.database.passwords import bcrypt_hash, is_bcrypt
from konverge.operators.nacos.database.real import RealDatabases
from konverge.operators.nacos.database.scripts import mysql_script, postgres_script
from konverge.operators.nacos.database.targets import quote_name

__all__ = [
    "WRONG_INPUT",
    "AdminOutcome",
    "DatabaseError",
    "Databases",
    "Engine",
    "Policy",
    "RealDatabases",
    "Reason",
    "SchemaOutcome",
    "Target",
    "Tls",
    "TlsMode",
    "bcrypt_hash",
    "is_bcrypt",
    "line_of",
    "mysql_script",
    "postgres_script",
    "quote_name",
]
