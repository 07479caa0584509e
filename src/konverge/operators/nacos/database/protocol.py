"""`Databases`: what the operator asks of databases, and the answers.

The operator knows nothing else: the real one (`RealDatabases`) connects to PostgreSQL, MySQL and MariaDB, the simulated
one (`konverge.sim.databases`) keeps its servers in memory, and one test suite holds both to the same behaviour. Each
call opens one connection and closes it: a reconciler calls rarely, and a pool per Nacos cluster would keep connections
that the servers themselves need.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

Engine = Literal["postgresql", "mysql"]
TlsMode = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]
Policy = Literal["IfNotPresent", "Always", "Never", "BumpVersion"]


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """How the connection is protected; the modes have libpq's meaning.

    `prefer` protects against listeners only, and falls back to plain text; the two `verify` modes need `ca`, a bundle
    in PEM, or take the system's. `server_name` is the name that the certificate must have where it is not the host.
    """

    mode: TlsMode = "prefer"
    ca: str = ""
    server_name: str = ""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One database on one server, and who connects to it."""

    engine: Engine
    host: str
    port: int
    database: str
    username: str
    password: str
    tls: Tls = Tls()

    def __repr__(self) -> str:
        return f"Target({self})"

    def __str__(self) -> str:
        """For people: without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.engine}://{self.username}@{host}:{self.port}/{self.database}"


class SchemaOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`performed`: this call changed the database. `version`: what the sentinel table says now (0: it has none)."""

    performed: bool
    version: int
    message: str


class AdminOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`performed`: this call changed rows; otherwise they were right already."""

    performed: bool
    message: str


class Databases(Protocol):
    """Every method raises `DatabaseError`, and nothing else, when something is wrong with the database.

    `timeout` bounds the whole call in seconds: connecting, waiting for locks, all statements.
    """

    async def check(self, target: Target, *, timeout: float) -> None:
        """The server is reachable, accepts the user, and takes writes."""
        ...

    async def ensure_schema(
        self,
        target: Target,
        *,
        line: str,
        policy: Policy,
        schema_version: int,
        timeout: float,
        default_admin: bool = False,
    ) -> SchemaOutcome:
        """Create or complete the tables that servers of this line ("2.4", "3.0") need, as the policy allows.

        `default_admin` also writes the user nacos with the password nacos, but only into a database without users:
        servers before 2.4 get their first user in no other way. Leave it off where `rotate_admin` writes one.
        """
        ...

    async def rotate_admin(
        self,
        target: Target,
        *,
        username: str,
        password_hash: str = "",
        password: str = "",
        previous: str = "",
        timeout: float,
    ) -> AdminOutcome:
        """Make `username` an enabled administrator with this bcrypt hash, or with a hash of this password.

        Give one of the two. Rows that already match are left alone (a plain password is compared with the stored
        hash). `previous` is the admin that an earlier rotation wrote: where the name changed, that user is removed.
        """
        ...
