"""`Databases`: what the operator does with databases. It ensures the schema, rotates the administrator, and checks.

`RealDatabases` connects to PostgreSQL, MySQL and MariaDB, the simulated ones (`konverge.sim.databases`) live in memory,
and one test suite holds both to the same behaviour. Each call opens one connection and closes it: a reconciler calls
rarely, and a pool per Nacos cluster would keep connections that the servers themselves need.

Each operation reads before it locks: when there is nothing to do (which is nearly always), it writes nothing and waits
for no lock. Otherwise it reads again under the lock, because another operator may have been faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from konverge.operators.nacos.database import postgres
from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.mysql import MysqlConnector
from konverge.operators.nacos.database.passwords import Bcrypt, Hasher, refuse_unusable_hash, refuse_unusable_password
from konverge.operators.nacos.database.plan import Plan, decide
from konverge.operators.nacos.database.scripts import Schema, family_of, schema
from konverge.operators.nacos.database.store import Connector, Store, User
from konverge.operators.nacos.database.target import Policy, Target

LONGEST_USERNAME = 50
"""The length of the column users.username."""
_LONGEST_NAME = 255
_LONGEST_SECRET = 4096


class SchemaOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`performed`: this call changed the database. `version`: what the sentinel table says now (0: it has none)."""

    performed: bool
    version: int
    message: str


class AdminOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`performed`: this call changed rows; otherwise they were right already."""

    performed: bool
    message: str


class Databases:
    """The databases of the operator, on top of a connector that opens stores.

    Every method raises `DatabaseError`, and nothing else, when something is wrong with the database. `timeout` bounds
    the whole call in seconds: connecting, waiting for locks, all statements.
    """

    def __init__(self, connector: Connector, hasher: Hasher) -> None:
        self._connector = connector
        self._hasher = hasher

    async def check(self, target: Target, *, timeout: float) -> None:
        """The server is reachable, accepts the user, and takes writes."""
        async with self._open(target, timeout) as store:
            await store.refuse_unless_writable()

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
        needed = schema(target.engine, family_of(line))
        async with self._open(target, timeout) as store:
            await store.refuse_unless_writable()
            plan = await _plan(store, needed, policy, schema_version)
            if not plan.statements:
                return _outcome(plan)
            async with store.exclusive():
                plan = await _plan(store, needed, policy, schema_version)
                await _apply(store, plan, default_admin)
            return _outcome(plan)

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
        _refuse_credentials(username, password_hash, password)
        obsolete = previous if previous != username else ""
        async with self._open(target, timeout) as store:
            await store.refuse_unless_writable()
            if await self._is_admin(store, username, password_hash, password, obsolete):
                return AdminOutcome(performed=False, message=f"{username} is the administrator already")
            hashed = password_hash or await self._hasher.hash(password)
            async with store.exclusive():
                # Of two operators with the same plain password, the second keeps the hash that the first one wrote.
                late = await self._is_admin(store, username, password_hash, password, obsolete)
                if not late:
                    await _make_admin(store, username, hashed, obsolete)
        gone = f"; the former administrator {obsolete} was removed" if obsolete else ""
        message = f"{username} is the administrator with the new password{gone}"
        return AdminOutcome(performed=not late, message=message)

    async def _is_admin(self, store: Store, username: str, password_hash: str, password: str, obsolete: str) -> bool:
        user = await store.user(username)
        if user is None or not (user.enabled and user.admin):
            return False
        if obsolete and await store.user(obsolete) is not None:
            return False
        return await self._same_password(user, password_hash, password)

    async def _same_password(self, user: User, password_hash: str, password: str) -> bool:
        if password_hash:
            return user.password_hash == password_hash
        return await self._hasher.matches(password, user.password_hash)

    @asynccontextmanager
    async def _open(self, target: Target, timeout: float) -> AsyncIterator[Store]:
        _refuse_unusable(target)
        try:
            async with asyncio.timeout(timeout), self._connector.connect(target, timeout=timeout) as store:
                yield store
        except TimeoutError as error:
            raise DatabaseError("Timeout", _late(target, timeout)) from error


async def _plan(store: Store, needed: Schema, policy: Policy, version: int) -> Plan:
    return decide(await store.layout(), await store.recorded(), needed, policy, version)


async def _apply(store: Store, plan: Plan, default_admin: bool) -> None:
    if not plan.statements:
        return  # another operator was faster
    for statement in plan.statements:
        await store.run(statement)
    if default_admin and plan.first_users:
        await store.add_default_admin()
    await store.record(plan.version)


def _outcome(plan: Plan) -> SchemaOutcome:
    return SchemaOutcome(performed=bool(plan.statements), version=plan.version, message=plan.message)


async def _make_admin(store: Store, username: str, hashed: str, obsolete: str) -> None:
    await store.write_user(username, hashed)
    await store.make_admin(username)
    if obsolete:
        await store.remove_user(obsolete)


def _refuse_unusable(target: Target) -> None:
    """Raises InvalidTarget for what no server could accept, before anything is tried."""
    for name, text, longest in (
        ("host", target.host, _LONGEST_NAME),
        ("database", target.database, _LONGEST_NAME),
        ("username", target.username, _LONGEST_NAME),
        ("password", target.password, _LONGEST_SECRET),
    ):
        if not text and name != "password":
            raise DatabaseError("InvalidTarget", f"the database's {name} is empty: set it")
        if "\0" in text or len(text) > longest:
            raise DatabaseError("InvalidTarget", f"the database's {name} has a zero byte or is longer than {longest}")
        if not _encodable(text):
            raise DatabaseError("InvalidTarget", f"the database's {name} is not valid Unicode")
    if not 0 < target.port < 65536:
        raise DatabaseError("InvalidTarget", f"{target.port} is not a port: use a number from 1 to 65535")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_credentials(username: str, password_hash: str, password: str) -> None:
    if not username or len(username) > LONGEST_USERNAME or "\0" in username:
        text = f"the admin's username must have 1 to {LONGEST_USERNAME} characters, and no zero byte"
        raise DatabaseError("InvalidCredentials", f"{text}: change it in the Secret")
    if bool(password_hash) == bool(password):
        text = "give either a password hash or a password for the admin"
        raise DatabaseError("InvalidCredentials", f"{text}: the Secret has {'both' if password else 'neither'}")
    if password:
        refuse_unusable_password(password)
    else:
        refuse_unusable_hash(password_hash)


def _late(target: Target, timeout: float) -> str:
    return (
        f"{target} did not finish within {timeout:g} s: it is overloaded, locked by another session, or behind a "
        "firewall that drops packets; raise timeoutSeconds if it is only slow"
    )


class _Engines(Connector):
    def __init__(self) -> None:
        self._mysql = MysqlConnector()

    def connect(self, target: Target, *, timeout: float) -> AbstractAsyncContextManager[Store]:
        if target.engine == "postgresql":
            return postgres.connect(target, timeout=timeout)
        return self._mysql.connect(target, timeout=timeout)


class RealDatabases(Databases):
    """PostgreSQL, MySQL and MariaDB; one for a whole operator. A driver is imported when its engine is first used."""

    def __init__(self) -> None:
        super().__init__(_Engines(), Bcrypt())
