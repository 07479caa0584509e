"""`Target`: one database on one server, and how to connect to it."""

from __future__ import annotations

from typing import Literal

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
