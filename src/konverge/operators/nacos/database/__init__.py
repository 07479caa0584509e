"""The databases behind Nacos: schema, admin user, checks; PostgreSQL, MySQL and MariaDB.

Refinements of the first sketch of this seam: `rotate_admin` also takes a plain `password` (compared with the stored
hash, so that the same Secret never rewrites the row) and the `previous` admin to remove; `ensure_schema` has
`default_admin` for servers before 2.4.
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

__all__ = [
    "WRONG_INPUT",
    "AdminOutcome",
    "DatabaseError",
    "Databases",
    "Engine",
    "Policy",
    "Reason",
    "SchemaOutcome",
    "Target",
    "Tls",
    "TlsMode",
]
