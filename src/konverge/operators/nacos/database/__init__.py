"""The databases behind Nacos (PostgreSQL, MySQL and MariaDB): schema, admin user, checks."""

from __future__ import annotations

from konverge.operators.nacos.database.errors import WRONG_INPUT, DatabaseError, Reason, quote_name
from konverge.operators.nacos.database.operations import RealDatabases
from konverge.operators.nacos.database.passwords import bcrypt_hash, is_bcrypt
from konverge.operators.nacos.database.protocol import (
    AdminOutcome,
    Databases,
    Engine,
    Policy,
    SchemaOutcome,
    Target,
    Tls,
    TlsMode,
)
from konverge.operators.nacos.database.scripts import mysql_script, postgres_script

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
    "mysql_script",
    "postgres_script",
    "quote_name",
]
