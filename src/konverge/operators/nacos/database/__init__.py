"""The databases behind Nacos (PostgreSQL, MySQL and MariaDB): schema, admin user, checks."""

from __future__ import annotations

from konverge.operators.nacos.database.drivers import tls_context
from konverge.operators.nacos.database.errors import WRONG_INPUT, DatabaseError, quote_name
from konverge.operators.nacos.database.operations import Databases, RealDatabases
from konverge.operators.nacos.database.passwords import bcrypt_hash, is_bcrypt
from konverge.operators.nacos.database.scripts import mysql_script, postgres_script
from konverge.operators.nacos.database.target import Engine, Policy, Target, Tls, TlsMode

__all__ = [
    "WRONG_INPUT",
    "DatabaseError",
    "Databases",
    "Engine",
    "Policy",
    "RealDatabases",
    "Target",
    "Tls",
    "TlsMode",
    "bcrypt_hash",
    "is_bcrypt",
    "mysql_script",
    "postgres_script",
    "quote_name",
    "tls_context",
]
