"""PostgreSQL: PGEnsure (step 2) and RotateAdmin (step 3).

PGEnsure: PostgreSQL is reachable and takes writes, and has the tables that this line of Nacos needs.

RotateAdmin: the administrator in the database has the password of the Secret. The Secret is watched, so a change takes
seconds; servers reread their users every 15 seconds.

What it shares with MySQL (`mysql.py`) is here too: the condition, and when a database is looked at again.
"""

from __future__ import annotations

import hashlib

import msgspec

from konverge.objects import times
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos.database import WRONG_INPUT, DatabaseError, Target
from konverge.operators.nacos.spec.references import AdminRef
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, Outcome, StepError, failed
from konverge.operators.nacos.steps.secrets import authority, optional_value, postgres_target, read_secret, value_of
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER, NacosVersion

DATABASE_READY = "DatabaseReady"
ROTATED = "AdminRotated"


async def pg_ensure(state: ReconcileState) -> Outcome:
    """Skipped without PostgreSQL, or where the user creates the tables (`pgInit.enabled: false`)."""
    desired, pg = state.desired, state.status.pg
    if desired.engine != "postgresql":
        return CONTINUE
    if not desired.spec.pg_init.enabled:
        await authority(state, desired.spec.postgres.tls)  # pods do not start without it
        return CONTINUE
    target = await postgres_target(state)
    settings = fingerprint(target, desired.version.line, msgspec.json.encode(desired.spec.pg_init).decode())
    if checked_recently(state, settings):
        return CONTINUE
    try:
        if state.tools.databases_checked.same(state.key, settings) and pg.initialized:
            await state.tools.databases.check(target, timeout=desired.spec.pg_init.timeout_seconds)
        else:
            await _initialise(state, target)
    except DatabaseError as error:
        pg.last_result, pg.last_message = "Failed", error.message
        return _keep_servers(state, database_failed(state, error))
    state.tools.databases_checked.remember(state.key, settings)
    state.condition(DATABASE_READY, True, "Writable", f"{target} takes writes")
    if pg.last_result == "Failed":
        pg.last_result, pg.last_message = "Success", ""
    return CONTINUE


def _keep_servers(state: ReconcileState, outcome: Outcome) -> Outcome:
    """The schema of another version cannot be made: that version waits, and servers that run are looked after."""
    upgrade = state.status.upgrade
    if upgrade is None or upgrade.step != "Migrating":
        return outcome
    state.unapplied = outcome
    return CONTINUE


async def _initialise(state: ReconcileState, target: Target) -> None:
    """As the policy allows; the database itself knows whether there is anything to do."""
    spec, version = state.desired.spec, known_version(state)
    admin = spec.admin_credentials_secret_ref
    result = await state.tools.databases.ensure_schema(
        target,
        line=version.line,
        policy=spec.pg_init.policy,
        schema_version=spec.pg_init.schema_version,
        timeout=spec.pg_init.timeout_seconds,
        default_admin=version < FIRST_WITHOUT_DEFAULT_USER and not (admin and admin.name),
    )
    pg = state.status.pg
    if result.performed or not pg.initialized:
        pg.last_init_time = times.now()
    pg.initialized, pg.init_version = True, result.version
    pg.last_result, pg.last_message = "Success", result.message
    if result.performed:
        state.ctx.event("DatabaseInitialized", result.message)


def known_version(state: ReconcileState) -> NacosVersion:
    version = state.desired.version
    if not version.known:
        message = f"the tag of {state.desired.spec.image} does not tell the version of Nacos: set spec.version"
        raise StepError(PARAMETER, "VersionUnknown", message)
    return version


def checked_recently(state: ReconcileState, settings: str) -> bool:
    recently = state.tools.databases_checked.fresh(state.key, settings, state.options.database_interval)
    return recently and state.is_true(DATABASE_READY)


def database_failed(state: ReconcileState, error: DatabaseError) -> Outcome:
    state.tools.databases_checked.forget(state.key)
    state.condition(DATABASE_READY, False, error.reason, error.message)
    return failed(PARAMETER if error.reason in WRONG_INPUT else SYSTEM, f"Database{error.reason}", error.message)


def fingerprint(target: Target, *more: str) -> str:
    """Changes with every setting that the check of a database depends on; kept in memory only."""
    parts = (str(target), target.password, msgspec.json.encode(target.tls).decode(), *more)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# ------------------------------------------------------------------ RotateAdmin


async def rotate_admin(state: ReconcileState) -> Outcome:
    """Skipped without PostgreSQL or without `adminCredentialsSecretRef`.

    Without PostgreSQL the administrator is looked after at the end of CheckAndMakeHeal (`admin.py`); but a missing
    Secret is better reported before anything is created.
    """
    ref = state.desired.spec.admin_credentials_secret_ref
    if ref is None or not ref.name:
        return CONTINUE
    if state.desired.engine != "postgresql":
        if not state.is_true(ROTATED) and state.desired.version >= FIRST_WITHOUT_DEFAULT_USER:
            await read_secret(state, ref.name)
        return CONTINUE
    secret = await read_secret(state, ref.name)
    username, hashed, plain = _credentials(secret, ref)
    checksum = state.desired.spec.admin_secret_checksum or checksum_of(secret, username, hashed)
    if not _is_due(state, secret, checksum):
        return CONTINUE
    admin = state.status.admin
    try:
        result = await state.tools.databases.rotate_admin(
            await postgres_target(state),
            username=username,
            password_hash=hashed,
            password="" if hashed else plain,
            previous=admin.username if admin.username != username else "",
            timeout=state.desired.spec.pg_init.timeout_seconds,
        )
    except DatabaseError as error:
        admin.last_result, admin.last_message = "Failed", error.message
        state.condition(ROTATED, False, error.reason, error.message)
        outcome = database_failed(state, error)
        if outcome.code == PARAMETER:  # the Secret is wrong, and not the database
            state.condition(DATABASE_READY, True, "Writable")
        return outcome
    admin.username, admin.last_result, admin.last_message = username, "Success", result.message
    admin.last_secret_resource_version = secret.metadata.resource_version
    admin.last_secret_checksum = checksum
    if result.performed or not admin.last_rotate_time:
        admin.last_rotate_time = times.now()
    state.condition(ROTATED, True, "Rotated", result.message)
    if result.performed:
        state.ctx.event("AdminRotated", f"the password of {username} is now that of Secret {ref.name}")
    return CONTINUE


def _credentials(secret: Secret, ref: AdminRef) -> tuple[str, str, str]:
    """The name, and the hash or the plain password."""
    username = value_of(secret, ref.username_key)
    hashed, plain = optional_value(secret, ref.password_hash_key), optional_value(secret, ref.password_key)
    if not hashed and not plain:
        message = f"secret {secret.metadata.name} missing key {ref.password_hash_key} (or {ref.password_key})"
        raise StepError(PARAMETER, "SecretMalformed", message)
    return username, hashed, plain


def _is_due(state: ReconcileState, secret: Secret, checksum: str) -> bool:
    """A checksum in the resource decides alone; else the Secret must have changed in version and in content."""
    admin = state.status.admin
    if admin.last_result != "Success":
        return True
    if state.desired.spec.admin_secret_checksum:
        return checksum != admin.last_secret_checksum
    same_version = secret.metadata.resource_version == admin.last_secret_resource_version
    return not same_version and checksum != admin.last_secret_checksum


def checksum_of(secret: Secret, username: str, hashed: str) -> str:
    """Of the hash. For a plain password it is that of the Secret's version: no password can be guessed from it."""
    content = f"{username}:{hashed}" if hashed else f"{secret.metadata.uid}:{secret.metadata.resource_version}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]
