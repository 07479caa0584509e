"""bcrypt, as Nacos stores passwords.

A hash takes a tenth of a second of CPU on purpose, so it never runs on the event loop. The cost is bounded in both
directions: with a hash of cost 20 in a Secret, every login would take the servers a minute.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from konverge.operators.nacos.database.drivers import driver
from konverge.operators.nacos.database.errors import DatabaseError

COST = 10
"""What Nacos itself uses."""

HIGHEST_COST = 15
"""Each step doubles the time: a login takes about 3 s."""

_HASH = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_LONGEST = 72
"""Bytes that bcrypt reads."""


def is_bcrypt(text: str) -> bool:
    """Whether Nacos can check passwords against this text."""
    return _HASH.fullmatch(text) is not None


def cost_of(hashed: str) -> int:
    return int(hashed[4:6])


def refuse_unusable_hash(hashed: str) -> None:
    if not is_bcrypt(hashed):
        text = "the admin's password hash is not bcrypt ($2a$, $2b$ or $2y$, 60 characters): create one with"
        raise DatabaseError("InvalidCredentials", f"{text} `htpasswd -nbBC 10 user password`, or give the password")
    if cost_of(hashed) > HIGHEST_COST:
        text = f"the admin's password hash has cost {cost_of(hashed)}: every login would take minutes"
        raise DatabaseError("InvalidCredentials", f"{text}; use a cost from 10 to {HIGHEST_COST}")


def refuse_unusable_password(password: str) -> None:
    """bcrypt reads 72 bytes and stops at a zero byte: two passwords that differ only after that would be the same."""
    if not password:
        raise DatabaseError("InvalidCredentials", "the admin's password is empty: set it in the Secret")
    if "\0" in password or len(password.encode("utf-8", "surrogatepass")) > _LONGEST:
        text = (
            f"the admin's password is longer than {_LONGEST} bytes or has a zero byte, which bcrypt cannot tell apart"
        )
        raise DatabaseError("InvalidCredentials", f"{text}: choose another")


class Hasher(Protocol):
    """Hashes passwords; the simulation has one that takes no time."""

    async def hash(self, password: str) -> str: ...

    async def matches(self, password: str, hashed: str) -> bool: ...


class Bcrypt(Hasher):
    """bcrypt on worker threads."""

    async def hash(self, password: str) -> str:
        return await bcrypt_hash(password)

    async def matches(self, password: str, hashed: str) -> bool:
        if not is_bcrypt(hashed) or cost_of(hashed) > HIGHEST_COST:
            return False
        bcrypt = await driver("bcrypt")
        return bool(await asyncio.to_thread(bcrypt.checkpw, password.encode(), hashed.encode()))


async def bcrypt_hash(password: str, *, cost: int = COST) -> str:
    """A new hash, with a salt of its own."""
    refuse_unusable_password(password)
    bcrypt = await driver("bcrypt")
    bounded = min(max(cost, 4), HIGHEST_COST)
    hashed: bytes = await asyncio.to_thread(lambda: bcrypt.hashpw(password.encode(), bcrypt.gensalt(bounded)))
    return hashed.decode()
