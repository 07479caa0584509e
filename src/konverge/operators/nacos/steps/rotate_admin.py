"""Step 3, RotateAdmin: the administrator's password is the one in the Secret, by the database and not by the servers.

It happens when the Secret has changed; the Secret is watched, so that is seconds after the change. Servers reread their
users every 15 seconds.
"""

from __future__ import annotations

import hashlib

from konverge.objects import times
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos.database import DatabaseError
from konverge.operators.nacos.spec import AdminRef
from konverge.operators.nacos.steps.pg_ensure import DATABASE_READY, failed
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.secrets import optional_value, postgres_target, read_secret, value_of
from konverge.operators.nacos.steps.stop import PARAMETER, Stop
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER

ROTATED = "AdminRotated"


async def rotate_admin(round: Round) -> None:
    """Skipped without PostgreSQL or without `adminCredentialsSecretRef`.

    Elsewhere the servers make the administrator, once (`bootstrap.py`). That comes last; that a Secret is not there is
    better told before anything is made.
    """
    round.step = "RotateAdmin"
    ref = round.wish.spec.admin_credentials_secret_ref
    if ref is None or not ref.name:
        return
    if round.wish.engine != "postgresql":
        if not round.is_true(ROTATED) and round.wish.version >= FIRST_WITHOUT_DEFAULT_USER:
            await read_secret(round, ref.name)
        return
    secret = await read_secret(round, ref.name)
    username, hashed, plain = _credentials(secret, ref)
    checksum = round.wish.spec.admin_secret_checksum or _checksum(secret, username, hashed)
    if not _is_due(round, secret, checksum):
        return
    admin = round.status.admin
    try:
        outcome = await round.tools.databases.rotate_admin(
            await postgres_target(round),
            username=username,
            password_hash=hashed,
            password="" if hashed else plain,
            previous=admin.username if admin.username != username else "",
            timeout=round.wish.spec.pg_init.timeout_seconds,
        )
    except DatabaseError as error:
        admin.last_result, admin.last_message = "Failed", error.message
        round.condition(ROTATED, False, error.reason, error.message)
        stop = failed(round, error)
        if stop.code == PARAMETER:  # the Secret is wrong, and not the database
            round.condition(DATABASE_READY, True, "Writable")
        raise stop from None
    admin.username, admin.last_result, admin.last_message = username, "Success", outcome.message
    admin.last_secret_resource_version = secret.metadata.resource_version
    admin.last_secret_checksum = checksum
    if outcome.performed or not admin.last_rotate_time:
        admin.last_rotate_time = times.now()
    round.condition(ROTATED, True, "Rotated", outcome.message)
    if outcome.performed:
        round.ctx.event("AdminRotated", f"the password of {username} is the one in Secret {ref.name}")


def _credentials(secret: Secret, ref: AdminRef) -> tuple[str, str, str]:
    """The name, and the hash or the plain password."""
    username = value_of(secret, ref.username_key)
    hashed, plain = optional_value(secret, ref.password_hash_key), optional_value(secret, ref.password_key)
    if not hashed and not plain:
        message = f"secret {secret.metadata.name} missing key {ref.password_hash_key} (or {ref.password_key})"
        raise Stop(PARAMETER, "SecretMalformed", message)
    return username, hashed, plain


def _is_due(round: Round, secret: Secret, checksum: str) -> bool:
    """A checksum in the resource decides alone; else the Secret must have changed in version and in content."""
    admin = round.status.admin
    if admin.last_result != "Success":
        return True
    if round.wish.spec.admin_secret_checksum:
        return checksum != admin.last_secret_checksum
    same_version = secret.metadata.resource_version == admin.last_secret_resource_version
    return not same_version and checksum != admin.last_secret_checksum


def _checksum(secret: Secret, username: str, hashed: str) -> str:
    """Of the hash. A plain password gets none that could be guessed from: its Secret's version stands for it."""
    content = f"{username}:{hashed}" if hashed else f"{secret.metadata.uid}:{secret.metadata.resource_version}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]
