"""Step 2, PGEnsure: PostgreSQL can be reached and written to, and has the tables that this line of Nacos needs."""

from __future__ import annotations

import hashlib

import msgspec

from konverge.objects import times
from konverge.operators.nacos.database import WRONG_INPUT, DatabaseError, Target
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.secrets import postgres_target
from konverge.operators.nacos.steps.stop import PARAMETER, SYSTEM, Stop
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER

DATABASE_READY = "DatabaseReady"


async def pg_ensure(round: Round) -> None:
    """Skipped without PostgreSQL, or when somebody else makes the tables (`pgInit.enabled: false`)."""
    round.step = "PGEnsure"
    if round.wish.engine != "postgresql" or not round.wish.spec.pg_init.enabled:
        return
    target = await postgres_target(round)
    wanted = fingerprint(target, round.wish.version.line, msgspec.json.encode(round.wish.spec.pg_init).decode())
    if round.tools.memory.fresh(round.key, wanted, round.options.database_interval) and round.is_true(DATABASE_READY):
        return
    try:
        if round.tools.memory.same(round.key, wanted) and round.status.pg.initialized:
            await round.tools.databases.check(target, timeout=round.wish.spec.pg_init.timeout_seconds)
        else:
            await _initialise(round, target)
    except DatabaseError as error:
        round.status.pg.last_result, round.status.pg.last_message = "Failed", error.message
        raise failed(round, error) from None
    round.tools.memory.note(round.key, wanted)
    found_well(round, target)


async def _initialise(round: Round, target: Target) -> None:
    """As the policy allows; the database itself knows whether there is anything to do."""
    wish, wanted = round.wish, round.wish.spec.pg_init
    if not wish.version.known:
        message = f"the tag of {wish.spec.image} does not tell the version of Nacos: set spec.version"
        raise Stop(PARAMETER, "VersionUnknown", message)
    admin = wish.spec.admin_credentials_secret_ref
    outcome = await round.tools.databases.ensure_schema(
        target,
        line=wish.version.line,
        policy=wanted.policy,
        schema_version=wanted.schema_version,
        timeout=wanted.timeout_seconds,
        default_admin=wish.version < FIRST_WITHOUT_DEFAULT_USER and not (admin and admin.name),
    )
    pg = round.status.pg
    if outcome.performed or not pg.initialized:
        pg.last_init_time = times.now()
    pg.initialized, pg.init_version = True, outcome.version
    pg.last_result, pg.last_message = "Success", outcome.message
    if outcome.performed:
        round.ctx.event("DatabaseInitialized", outcome.message)


def found_well(round: Round, target: Target) -> None:
    round.condition(DATABASE_READY, True, "Writable", f"{target} takes writes")
    if round.status.pg.last_result == "Failed":
        round.status.pg.last_result, round.status.pg.last_message = "Success", ""


def failed(round: Round, error: DatabaseError) -> Stop:
    """What a database's refusal means for the round."""
    round.tools.memory.forget(round.key)
    round.condition(DATABASE_READY, False, error.reason, error.message)
    return Stop(PARAMETER if error.reason in WRONG_INPUT else SYSTEM, f"Database{error.reason}", error.message)


def fingerprint(target: Target, *more: str) -> str:
    """Changes with anything that would make a database look different; kept in memory only."""
    parts = (str(target), target.password, msgspec.json.encode(target.tls).decode(), *more)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
