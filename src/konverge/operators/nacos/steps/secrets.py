"""What the steps read from Secrets. The messages about missing Secrets and keys are the document's."""

from __future__ import annotations

import base64
import binascii
import hashlib

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import CA_KEY
from konverge.operators.nacos.children.environment import IDENTITY_KEY, IDENTITY_VALUE, from_secrets
from konverge.operators.nacos.database import Target, Tls
from konverge.operators.nacos.server import Identity
from konverge.operators.nacos.spec.storage import DatabaseTls
from konverge.operators.nacos.steps.outcome import PARAMETER, SYSTEM, StepError
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.runtime.owners import is_controlled_by


async def read_secret(state: ReconcileState, name: str) -> Secret:
    secret = await state.reads.get(Secret, name)
    if secret is None:
        message = f"get secret {state.key.namespace}/{name} failed: there is none; create it"
        raise StepError(SYSTEM, "SecretMissing", message)
    return secret


def value_of(secret: Secret, key: str) -> str:
    """The value of a key that must exist."""
    value = optional_value(secret, key)
    if not value:
        raise StepError(PARAMETER, "SecretMalformed", f"secret {secret.metadata.name} missing key {key}")
    return value


def optional_value(secret: Secret, key: str) -> str:
    try:
        return base64.b64decode(secret.data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        message = f"secret {secret.metadata.name} key {key} is not text"
        raise StepError(PARAMETER, "SecretMalformed", message) from None


async def secrets_digest(state: ReconcileState) -> str:
    """Of the values that the pods take from Secrets. A missing Secret changes nothing: the pods keep what they have.

    The digest includes the Secret's uid, which only readers of the Secret know: no password can be guessed from it.
    """
    digest = hashlib.sha256()
    for name, key in from_secrets(state.desired):
        secret = await state.reads.get(Secret, name)
        if secret is None or key not in secret.data:
            return await _digest_in_use(state)
        digest.update("\0".join((secret.metadata.uid, key, secret.data[key], "")).encode())
    return digest.hexdigest()[:16] if from_secrets(state.desired) else ""


async def _digest_in_use(state: ReconcileState) -> str:
    live = await state.reads.get(StatefulSet, state.desired.name)
    return live.spec.template.metadata.annotations.get(names.SECRETS_DIGEST, "") if live is not None else ""


async def postgres_target(state: ReconcileState) -> Target:
    """The address of PostgreSQL, and the credentials."""
    postgres = state.desired.spec.postgres
    ref = postgres.credentials_secret_ref
    secret = await read_secret(state, ref.name)
    ca = await authority(state, postgres.tls)
    return Target(
        engine="postgresql",
        host=postgres.host,
        port=int(postgres.port),
        database=postgres.database,
        username=value_of(secret, ref.username_key),
        password=value_of(secret, ref.password_key),
        tls=Tls(mode=postgres.tls.mode_in_force, ca=ca, server_name=postgres.tls.server_name),
    )


async def authority(state: ReconcileState, tls: DatabaseTls) -> str:
    """The certificate authority of a database, in PEM; empty: none is given."""
    ref = tls.ca_secret_ref
    return value_of(await read_secret(state, ref.name), ref.key or CA_KEY) if ref is not None else ""


async def mysql_target(state: ReconcileState) -> Target:
    """The address of MySQL, and the credentials."""
    database, tls = state.desired.spec.database, state.desired.spec.database.tls
    ref, username, password = database.mysql_credentials_secret_ref, database.mysql_user, database.mysql_password
    if ref is not None and ref.name:
        secret = await read_secret(state, ref.name)
        username, password = value_of(secret, ref.username_key), value_of(secret, ref.password_key)
    return Target(
        engine="mysql",
        host=database.mysql_host,
        port=int(database.mysql_port),
        database=database.mysql_db,
        username=username,
        password=password,
        # Without the block, servers use no TLS, and a check works wherever they can.
        tls=Tls(mode=tls.mode_in_force, ca=await authority(state, tls)) if tls is not None else Tls(),
    )


async def identity_of(state: ReconcileState) -> Identity | None:
    """The header that opens the servers' API, where they have one.

    An existing Secret is used even where the desired version needs none: servers of the version before may.
    """
    ref = state.desired.spec.identity_secret_ref
    if ref is not None and ref.name:
        secret = await read_secret(state, ref.name)
        return Identity(value_of(secret, ref.key_key), value_of(secret, ref.value_key))
    generated = await state.reads.get(Secret, names.auth_secret(state.desired.name))
    if generated is None or not is_controlled_by(generated, state.ctx.obj):
        return None
    return Identity(value_of(generated, IDENTITY_KEY), value_of(generated, IDENTITY_VALUE))
