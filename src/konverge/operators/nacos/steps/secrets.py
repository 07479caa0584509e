"""What the steps read from Secrets, with the document's words when it is not there."""

from __future__ import annotations

import base64
import binascii
import hashlib

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.children.environment import from_secrets
from konverge.operators.nacos.children.properties import CA_KEY
from konverge.operators.nacos.children.secrets import IDENTITY_KEY, IDENTITY_VALUE
from konverge.operators.nacos.database import Target, Tls
from konverge.operators.nacos.server import Identity
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import PARAMETER, SYSTEM, Stop


async def read_secret(round: Round, name: str) -> Secret:
    secret = await round.get(Secret, name)
    if secret is None:
        raise Stop(SYSTEM, "SecretMissing", f"get secret {round.key.namespace}/{name} failed: there is none; create it")
    return secret


def value_of(secret: Secret, key: str) -> str:
    """One value, which must be there."""
    found = optional_value(secret, key)
    if not found:
        raise Stop(PARAMETER, "SecretMalformed", f"secret {secret.metadata.name} missing key {key}")
    return found


def optional_value(secret: Secret, key: str) -> str:
    try:
        return base64.b64decode(secret.data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        message = f"secret {secret.metadata.name} key {key} is not text"
        raise Stop(PARAMETER, "SecretMalformed", message) from None


async def secrets_digest(round: Round) -> str:
    """Of what the pods take from Secrets; a Secret that is missing changes nothing, pods go on with what they have.

    The Secret's uid is in it, which only those know who may read the Secret: so no password can be guessed from it.
    """
    found = hashlib.sha256()
    for name, key in from_secrets(round.wish):
        secret = await round.ctx.get(Secret, name)
        if secret is None or key not in secret.data:
            return await _digest_in_use(round)
        found.update("\0".join((secret.metadata.uid, key, secret.data[key], "")).encode())
    return found.hexdigest()[:16] if from_secrets(round.wish) else ""


async def _digest_in_use(round: Round) -> str:
    live = await round.ctx.get(StatefulSet, round.wish.name)
    return live.spec.template.metadata.annotations.get(names.SECRETS_DIGEST, "") if live is not None else ""


async def postgres_target(round: Round) -> Target:
    """Where PostgreSQL is and who connects."""
    postgres = round.wish.spec.postgres
    ref = postgres.credentials_secret_ref
    secret = await read_secret(round, ref.name)
    ca = ""
    if postgres.tls.ca_secret_ref is not None:
        chain = postgres.tls.ca_secret_ref
        ca = value_of(await read_secret(round, chain.name), chain.key or CA_KEY)
    return Target(
        engine="postgresql",
        host=postgres.host,
        port=int(postgres.port),
        database=postgres.database,
        username=value_of(secret, ref.username_key),
        password=value_of(secret, ref.password_key),
        tls=Tls(mode=postgres.tls.mode, ca=ca, server_name=postgres.tls.server_name),
    )


async def mysql_target(round: Round) -> Target:
    """Where MySQL is and who connects."""
    database = round.wish.spec.database
    ref, username, password = database.mysql_credentials_secret_ref, database.mysql_user, database.mysql_password
    if ref is not None and ref.name:
        secret = await read_secret(round, ref.name)
        username, password = value_of(secret, ref.username_key), value_of(secret, ref.password_key)
    return Target(
        engine="mysql",
        host=database.mysql_host,
        port=int(database.mysql_port),
        database=database.mysql_db,
        username=username,
        password=password,
    )


async def identity_of(round: Round) -> Identity | None:
    """The header that opens the servers' API, where they have one.

    A Secret that is there is used even where the wish needs none: servers of the version before may.
    """
    ref = round.wish.spec.identity_secret_ref
    if ref is not None and ref.name:
        secret = await read_secret(round, ref.name)
        return Identity(value_of(secret, ref.key_key), value_of(secret, ref.value_key))
    made = await round.ctx.get(Secret, names.auth_secret(round.wish.name))
    return None if made is None else Identity(value_of(made, IDENTITY_KEY), value_of(made, IDENTITY_VALUE))
