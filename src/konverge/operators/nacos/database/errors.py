"""`DatabaseError`, the one error of this package, and how errors of servers and of the network become one.

`reason` is a CamelCase word for conditions and events, `message` says in one or two sentences what the user can do.
Neither ever holds a password: messages are built from the target's parts and from the server's text. That text is
quoted where it helps, on one line, bounded, and with the connection's password masked, should a server repeat it.
"""

from __future__ import annotations

import socket
import ssl
from typing import Literal

from konverge.operators.nacos.database.target import Engine, Target

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
    "Failed",  # anything else that the server answer
]

WRONG_INPUT: frozenset[Reason] = frozenset({"InvalidTarget", "InvalidCredentials", "VersionMismatch"})
"""Reasons that another attempt cannot cure: the resource or its Secret has to change (code 301 of the operator)."""


class DatabaseError(Exception):
    """A database is not as it should be."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


_LONGEST_QUOTE = 300

# By SQLSTATE (PostgreSQL's appendix A); the longest prefix wins.
_POSTGRES: dict[str, Reason] = {
    "08": "Interrupted",
    "23505": "Interrupted",
    "25006": "ReadOnly",
    "28": "AuthenticationFailed",
    "3D000": "DatabaseMissing",
    "3F000": "PermissionDenied",
    "40": "Interrupted",
    "42501": "PermissionDenied",
    "42703": "SchemaBroken",
    "42804": "SchemaBroken",
    "42809": "SchemaBroken",
    "42P01": "SchemaMissing",
    "53": "Overloaded",
    "55P03": "Timeout",
    "57014": "Timeout",
    "57P": "Interrupted",
    "57P03": "Unreachable",
}

# Error numbers: of servers from 1000, of client libraries from 2000.
_MYSQL: dict[Reason, tuple[int, ...]] = {
    "AuthenticationFailed": (1045, 1130, 1251, 1698, 1862, 2059, 2061),
    "DatabaseMissing": (1049,),
    "PermissionDenied": (1044, 1142, 1143, 1227, 1370),
    "ReadOnly": (1290, 1792, 1836),
    "Overloaded": (1021, 1037, 1038, 1040, 1041, 1114, 1203, 1226),
    "Timeout": (1205, 1907, 1969, 3024),
    "Interrupted": (1053, 1062, 1158, 1159, 1160, 1161, 1213, 1317, 1927, 2006, 2013, 4031),
    "SchemaMissing": (1146,),
    "SchemaBroken": (1054, 1060, 1347, 1364, 1366),
    "Unreachable": (1129, 2002, 2003, 2005),
    "TlsFailed": (2026, 3159),
}
_MYSQL_REASONS = {number: reason for reason, numbers in _MYSQL.items() for number in numbers}


def postgres_error(sqlstate: str, answer: str, target: Target) -> DatabaseError:
    prefixes = [prefix for prefix in _POSTGRES if sqlstate.startswith(prefix)]
    reason = _POSTGRES[max(prefixes, key=len)] if prefixes else "Failed"
    if reason == "AuthenticationFailed" and "pg_hba.conf" in answer:
        text = f"{target}: the server's pg_hba.conf does not let this user in from here: {_quoted(answer, target)}"
        return DatabaseError(reason, f"{text}; add an entry, or choose another TLS mode")
    return _error(reason, answer, target)


def mysql_error(number: int, answer: str, target: Target) -> DatabaseError:
    reason = _MYSQL_REASONS.get(number, "Failed")
    if number == 1044:
        name = quote_name(target.engine, target.database)
        text = f"{target}: the database does not exist, or the user has no rights on it ({_quoted(answer, target)})"
        return DatabaseError(reason, f"{text}: run CREATE DATABASE {name}, and GRANT ALL ON {name}.* to the user")
    if number == 1130:
        text = f"{target}: the server accepts no connection from here: {_quoted(answer, target)}"
        return DatabaseError(reason, f"{text}; create the user for this address or for '%'")
    if number == 3159:
        text = f"{target}: the server insists on TLS: set the TLS mode to require, verify-ca or verify-full"
        return DatabaseError(reason, text)
    return _error(reason, answer, target)


def network_error(error: OSError, target: Target) -> DatabaseError:
    """An error of sockets or TLS, before or below the protocol."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"{target}: the server's certificate was refused ({error.verify_message.rstrip('.')})"
        return DatabaseError("TlsFailed", f"{text}: give the CA that signed it, and a server name that it has")
    if isinstance(error, ssl.SSLError):
        return _error("TlsFailed", str(error), target)
    if isinstance(error, socket.gaierror):
        text = f"{target}: no address is known for the host ({error.strerror}): check its name, and DNS"
        return DatabaseError("Unreachable", text)
    return _error("Unreachable", error.strerror or str(error) or type(error).__name__, target)


def no_tls(target: Target) -> DatabaseError:
    text = f"{target}: the server does not speak TLS, and the mode is {target.tls.mode}"
    return DatabaseError("TlsFailed", f"{text}: switch TLS on in the server, or set the mode to prefer or disable")


def standby(target: Target) -> DatabaseError:
    text = f"{target}: this server is a standby (pg_is_in_recovery): give the address of the primary"
    return DatabaseError("ReadOnly", text)


def read_only_transactions(target: Target) -> DatabaseError:
    text = f"{target}: transactions are read-only here: switch default_transaction_read_only off"
    return DatabaseError("ReadOnly", f"{text} (server, database or user), or give another server")


def read_only_server(target: Target, variable: str) -> DatabaseError:
    text = f"{target}: the server takes no writes ({variable} is on): give the address of the primary"
    return DatabaseError("ReadOnly", f"{text}, or SET GLOBAL {variable} = OFF")


def too_old(target: Target, version: str, needed: str) -> DatabaseError:
    return DatabaseError("ServerTooOld", f"{target}: {version} is too old: {needed} or newer is needed")


def occupied(target: Target) -> DatabaseError:
    text = f"{target}: another operator is working on this database; the operator will try again"
    return DatabaseError("Timeout", text)


def _error(reason: Reason, answer: str, target: Target) -> DatabaseError:
    return DatabaseError(reason, f"{target}: {_advice(reason, target)} ({_quoted(answer, target)})")


def _advice(reason: Reason, target: Target) -> str:
    user, database = quote_name(target.engine, target.username), quote_name(target.engine, target.database)
    match reason:
        case "AuthenticationFailed":
            return "the server refused the username or the password: correct the credentials Secret"
        case "DatabaseMissing":
            return f"the database does not exist: run CREATE DATABASE {database} on the server, or correct its name"
        case "PermissionDenied" if target.engine == "postgresql":
            return (
                f"the user may not do this: make it the owner of the database (ALTER DATABASE {database} OWNER TO "
                f"{user}), or GRANT CREATE ON SCHEMA public and rights on the tables of Nacos to {user}"
            )
        case "PermissionDenied":
            return f"the user may not do this: GRANT ALL ON {database}.* to {user}"
        case "ReadOnly":
            return "the server takes no writes: give the address of the primary"
        case "Overloaded":
            return "the server has no room (connections, memory or disk): free some, or raise its limits"
        case "Timeout":
            return "a lock or a statement took too long: look for long transactions on the server"
        case "Interrupted":
            return "the server ended the work half-way; the operator will try again"
        case "SchemaMissing":
            return "a table of Nacos is missing: let the operator create the schema, or run its script"
        case "SchemaBroken":
            return "a table is not as Nacos needs it: restore it, or give Nacos a database of its own"
        case "Unreachable":
            return "no connection: check host, port, network policies, and that the server runs"
        case "TlsFailed":
            return "TLS could not be agreed on: check the server's certificate and the TLS mode"
        case _:
            return "the server refused"


def _quoted(answer: str, target: Target) -> str:
    line = " ".join(answer.split())
    if target.password:
        line = line.replace(target.password, "***")
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def quote_name(engine: Engine, name: str) -> str:
    """The name of a database, table or user, quoted for the engine's SQL."""
    mark = '"' if engine == "postgresql" else "`"
    return mark + name.replace(mark, mark * 2) + mark
