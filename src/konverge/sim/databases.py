"""Simulated database servers, for the Nacos operator on virtual time.

The decisions, messages and time limits are the operator's own: this module only opens stores in memory. It simulates
servers with users, databases with tables and rows, transactions (PostgreSQL's are atomic, MySQL's commit with every
CREATE TABLE), and faults, which tests set as attributes of a server.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from konverge.operators.nacos.database import errors, passwords, scripts
from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.operations import Databases
from konverge.operators.nacos.database.scripts import SENTINEL, Statement, family_of
from konverge.operators.nacos.database.store import Connector, Store, User
from konverge.operators.nacos.database.target import Engine, Target

_BCRYPT_ALPHABET = bytes.maketrans(b"+/", b"./")
_DEFAULT_HASH = "$2a$10$EuWPZHzz32dJN7jexM34MOeYirDdFAZm2kuWj7VEOJhhZkDrxfvUu"


@dataclass
class Kept:
    """What servers keep besides users and configurations."""

    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Title and description by id, without `public`."""
    types: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """The form of a configuration, where it was given."""
    history: list[tuple[tuple[str, str, str], str, str]] = field(default_factory=list)
    """Configuration, operation (I, U, D) and content: the new one of an I, the one before of the others."""

    roles: set[tuple[str, str]] = field(default_factory=set)
    """Role and user, without those of administrators."""
    permissions: set[tuple[str, str, str]] = field(default_factory=set)
    """Role, resource and action."""

    def copy(self) -> Kept:
        return Kept(dict(self.namespaces), dict(self.types), list(self.history), set(self.roles), set(self.permissions))


@dataclass
class Content:
    """The content of a database: tables with their columns, the sentinel's version, users, administrators."""

    tables: dict[str, frozenset[str]] = field(default_factory=dict)
    version: int | None = None
    users: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Name to password hash, and whether it is enabled."""
    admins: set[str] = field(default_factory=set)
    configs: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """What the servers on this database keep in it: by namespace, group and dataId."""
    kept: Kept = field(default_factory=Kept)


class SimulatedDatabase:
    """One database. `content` is the committed state; tests may change it between calls."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.content = Content()
        self.lock = asyncio.Lock()
        """An operator holds it during changes; a test may hold it to act as another operator."""

    def initialise(self, line: str, *, tables: int | None = None, version: int | None = 1) -> None:
        """The state after an earlier run. With `tables`, that run ended after so many of them: half-initialised."""
        for statement in scripts.schema(self.engine, family_of(line)).statements:
            if tables is not None and len(self.content.tables) >= tables and statement.table not in self.content.tables:
                return
            _apply(self.content, statement)
        self.content.version = version

    def accepts(self, username: str, password: str) -> bool:
        """Whether a Nacos server on this database lets this user log in. Real servers ignore `enabled` too."""
        stored = self.content.users.get(username)
        if stored is None:
            return False
        return stored[0] == simulated_hash(password) or _matches_bcrypt(password, stored[0])


class SimulatedServer:
    """A server and its faults, which may be set at any time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.users: dict[str, str] = {}
        self.databases: dict[str, SimulatedDatabase] = {}
        self.down = False
        """It refuses connections; open connections break."""
        self.read_only: Literal["", "standby", "setting"] = ""
        self.full = False
        """No connection slot is free."""
        self.denied = False
        """The user may only read."""
        self.delay = 0.0
        """Seconds before every answer."""
        self.tls = True
        self.insists_on_tls = False
        """It refuses connections without TLS."""
        self.ca = ""
        """The CA that verifying clients must trust."""
        self.names: frozenset[str] = frozenset()
        """The names in the server's certificate."""
        self.connections = 0
        self.writes = 0
        self._breaks_in: int | None = None
        self._frozen: asyncio.Event | None = None

    def add(self, database: str, username: str, password: str) -> SimulatedDatabase:
        self.users[username] = password
        return self.databases.setdefault(database, SimulatedDatabase(self.engine))

    def lose_storage(self) -> None:
        """Its volume is gone: the same databases and logins are created again, and all of them are empty."""
        for database in self.databases.values():
            database.content = Content()

    def freeze(self) -> None:
        """Accept connections, and answer nothing any more."""
        self._frozen = self._frozen or asyncio.Event()

    def thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.set()
            self._frozen = None

    def break_after(self, writes: int) -> None:
        """Break the connection once, after so many more writes."""
        self._breaks_in = writes

    async def answer(self, target: Target) -> None:
        """Wait as the server's faults demand. Raises when it does not answer."""
        await asyncio.sleep(self.delay)
        while self._frozen is not None:
            await self._frozen.wait()
        if self.down:
            raise _connection_lost(target)

    def count_write(self, target: Target) -> None:
        if self.denied:
            raise _error(target, "42501", 1142, "permission denied")
        if self._breaks_in == 0:
            self._breaks_in = None
            raise _connection_lost(target)
        if self._breaks_in is not None:
            self._breaks_in -= 1
        self.writes += 1


class SimulatedDatabases(Databases):
    """The operator's databases in a simulation. `calls` counts its calls.

    >>> databases = SimulatedDatabases()
    >>> nacos = databases.add_server("pg.example", 5432, "postgresql").add("nacos", "nacos", "secret")
    >>> nacos.initialise("2.4", tables=3)
    """

    def __init__(self) -> None:
        self.servers: dict[tuple[str, int], SimulatedServer] = {}
        self.calls: Counter[str] = Counter()
        super().__init__(_Servers(self.servers), SimulatedHasher())

    def add_server(self, host: str, port: int, engine: Engine) -> SimulatedServer:
        return self.servers.setdefault((host, port), SimulatedServer(engine))

    async def check(self, target: Target, **options: Any) -> None:
        self.calls["check"] += 1
        await super().check(target, **options)

    async def ensure_schema(self, target: Target, **options: Any) -> Any:
        self.calls["ensure_schema"] += 1
        return await super().ensure_schema(target, **options)

    async def rotate_admin(self, target: Target, **options: Any) -> Any:
        self.calls["rotate_admin"] += 1
        return await super().rotate_admin(target, **options)


# ------------------------------------------------------------------ connections


class _Servers(Connector):
    def __init__(self, servers: dict[tuple[str, int], SimulatedServer]) -> None:
        self._servers = servers

    @asynccontextmanager
    async def connect(self, target: Target, *, timeout: float) -> AsyncIterator[Store]:
        server = self._servers.get((target.host, target.port))
        if server is None:
            raise errors.network_error(socket.gaierror(-2, "Name or service not known"), target)
        if server.down or server.engine != target.engine:
            raise errors.network_error(ConnectionRefusedError(111, "Connection refused"), target)
        server.connections += 1
        await server.answer(target)
        _refuse_tls(server, target)
        _refuse_login(server, target)
        yield _MemoryStore(server, server.databases[target.database], target)


def _refuse_tls(server: SimulatedServer, target: Target) -> None:
    mode = target.tls.mode
    if mode == "disable" and server.insists_on_tls:
        raise _error(target, "28000", 3159, "no pg_hba.conf entry for host, no encryption")
    if mode in ("disable", "prefer"):
        return
    if not server.tls:
        raise errors.no_tls(target)
    name = target.tls.server_name or target.host
    wrong_name = mode == "verify-full" and name not in server.names
    if mode != "require" and (target.tls.ca.strip() != server.ca.strip() or wrong_name):
        text = f"{target}: the server's certificate was refused: give the CA that signed it, and one of its names"
        raise DatabaseError("TlsFailed", text)


def _refuse_login(server: SimulatedServer, target: Target) -> None:
    if server.full:
        raise _error(target, "53300", 1040, "too many connections")
    if server.users.get(target.username) != target.password:
        raise _error(target, "28P01", 1045, f"authentication failed for user {target.username}")
    if target.database not in server.databases:
        raise _error(target, "3D000", 1049, f"database {target.database} does not exist")


def _error(target: Target, sqlstate: str, number: int, text: str) -> DatabaseError:
    if target.engine == "postgresql":
        return errors.postgres_error(sqlstate, text, target)
    return errors.mysql_error(number, text, target)


def _connection_lost(target: Target) -> DatabaseError:
    return _error(target, "08003", 2013, "the connection was closed in the middle of an operation")


class _MemoryStore(Store):
    """Outside of an exclusive block `_content` is the committed state; inside, a copy that will replace it."""

    def __init__(self, server: SimulatedServer, database: SimulatedDatabase, target: Target) -> None:
        self._server = server
        self._database = database
        self._target = target
        self._copy: Content | None = None

    @property
    def _content(self) -> Content:
        return self._copy or self._database.content

    async def refuse_unless_writable(self) -> None:
        await self._server.answer(self._target)
        if self._server.read_only and self._target.engine == "mysql":
            raise errors.read_only_server(self._target, "read_only")
        if self._server.read_only == "standby":
            raise errors.standby(self._target)
        if self._server.read_only:
            raise errors.read_only_transactions(self._target)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        await self._server.answer(self._target)
        async with self._database.lock:
            self._copy = copy.deepcopy(self._database.content)
            try:
                yield
                await self._server.answer(self._target)
                self._database.content = self._copy
            finally:
                self._copy = None

    async def layout(self) -> dict[str, frozenset[str]]:
        await self._server.answer(self._target)
        return dict(self._content.tables)

    async def recorded(self) -> int | None:
        await self._server.answer(self._target)
        return self._content.version if SENTINEL in self._content.tables else None

    async def record(self, version: int) -> None:
        await self._write()
        self._content.version = version

    async def run(self, statement: Statement) -> None:
        await self._write()
        _apply(self._content, statement)
        if self._target.engine == "mysql":
            _apply(self._database.content, statement)

    async def add_default_admin(self) -> None:
        await self._write("users")
        if not self._content.users:
            self._content.users["nacos"] = (_DEFAULT_HASH, True)
            self._content.admins.add("nacos")

    async def user(self, name: str) -> User | None:
        await self._server.answer(self._target)
        self._refuse_missing("users")
        stored = self._content.users.get(name)
        return None if stored is None else User(*stored, name in self._content.admins)

    async def write_user(self, name: str, password_hash: str) -> None:
        await self._write("users")
        self._content.users[name] = (password_hash, True)

    async def make_admin(self, name: str) -> None:
        await self._write("roles")
        self._content.admins.add(name)

    async def remove_user(self, name: str) -> None:
        await self._write("users")
        self._content.users.pop(name, None)
        self._content.admins.discard(name)

    async def _write(self, table: str = "") -> None:
        await self._server.answer(self._target)
        self._server.count_write(self._target)
        if table:
            self._refuse_missing(table)

    def _refuse_missing(self, table: str) -> None:
        if table not in self._content.tables:
            raise _error(self._target, "42P01", 1146, f"table {table} does not exist")


def _apply(content: Content, statement: Statement) -> None:
    content.tables[statement.table] = content.tables.get(statement.table, frozenset()) | statement.columns


# ------------------------------------------------------------------ passwords


class SimulatedHasher(passwords.Hasher):
    """Hashes that look like bcrypt's, take no time, need no thread, and are the same in every run."""

    async def hash(self, password: str) -> str:
        return simulated_hash(password)

    async def matches(self, password: str, hashed: str) -> bool:
        return hashed == simulated_hash(password)


def simulated_hash(password: str) -> str:
    digest = hashlib.sha384(password.encode()).digest()
    return "$2b$10$" + base64.b64encode(digest).translate(_BCRYPT_ALPHABET)[:53].decode()


def _matches_bcrypt(password: str, hashed: str) -> bool:
    """Against a real hash, which a Secret may have."""
    if not passwords.is_bcrypt(hashed):
        return False
    import bcrypt

    return bcrypt.checkpw(password.encode(), hashed.encode())
