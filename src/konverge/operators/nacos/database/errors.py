"""The one error of this package.

`reason` is a CamelCase word for conditions and events, `message` one sentence or two that tell the user what to do.
Neither ever holds a password: messages are made from the target's parts and from what the server said.
"""

from __future__ import annotations

from typing import Literal

Reason = Literal[
    "InvalidTarget",  # the resource or its Secret cannot be right: no attempt was made
    "InvalidCredentials",  # the admin's name, hash or password cannot be stored
    "DriverMissing",  # this installation of Konverge lacks the extra with the drivers
    "Unreachable",  # no connection: refused, no such host, reset
    "Timeout",  # the time limit passed
    "TlsFailed",  # certificates, names, or a server without TLS
    "AuthenticationFailed",  # the server knows no such user, or the password is wrong
    "DatabaseMissing",  # the server has no database of this name
    "PermissionDenied",  # the user may not do what is needed
    "ReadOnly",  # a standby, or a server that refuses writes
    "ServerTooOld",
    "Overloaded",  # no connection slot, no memory, no disk
    "SchemaMissing",  # policy Never, and tables are missing
    "SchemaBroken",  # tables are there that are not those of Nacos
    "VersionMismatch",  # the database is of a newer schema version than the resource asks for
    "Interrupted",  # the server ended the session or the transaction: worth another try
    "Failed",  # anything else that the server said
]

WRONG_INPUT: frozenset[Reason] = frozenset({"InvalidTarget", "InvalidCredentials", "VersionMismatch"})
"""Reasons that another attempt cannot cure: the resource or its Secret has to change (code 301 of the operator)."""


class DatabaseError(Exception):
    """A database is not as it should be."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
