"""What the operator has done to databases, on any store: the schema, the admin, the check.

Each operation looks before it locks: when nothing is to be done (which is nearly always), nothing is written and
nobody waits. When something is, it looks again behind the lock, because another operator may have been faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from konverge.operators.nacos.database.contract import AdminOutcome, Databases, Policy, SchemaOutcome, Target
from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.lines import family_of
from konverge.operators.nacos.database.passwords import Hasher, refuse_unusable_hash, refuse_unusable_password
from konverge.operators.nacos.database.plan import Plan, decide
from konverge.operators.nacos.database.scripts import Schema, schema
from konverge.operators.nacos.database.store import Connector, Store, User
from konverge.operators.nacos.database.targets import refuse_unusable

LONGEST_USERNAME = 50
"""Of the column users.username."""


class StoredDatabases(Databases):
    """`Databases` on whatever opens stores."""

    def __init__(self, connector: Connector, hasher: Hasher) -> None:
        self._connector = connector
        self._hasher = hasher

    async def check(self, target: Target, *, timeout: float) -> None:
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
        _refuse_credentials(username, password_hash, password)
        obsolete = previous if previous != username else ""
        async with self._open(target, timeout) as store:
            await store.refuse_unless_writable()
            if await self._is_so(store, username, password_hash, password, obsolete):
                return AdminOutcome(performed=False, message=f"{username} is the administrator already")
            hashed = password_hash or await self._hasher.hash(password)
            async with store.exclusive():
                # Of two operators that were given a password, the second finds the first one's hash: equally good.
                late = await self._is_so(store, username, password_hash, password, obsolete)
                if not late:
                    await _make_admin(store, username, hashed, obsolete)
        gone = f"; the former administrator {obsolete} was removed" if obsolete else ""
        message = f"{username} is the administrator with the new password{gone}"
        return AdminOutcome(performed=not late, message=message)

    async def _is_so(self, store: Store, username: str, password_hash: str, password: str, obsolete: str) -> bool:
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
        refuse_unusable(target)
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
