"""MySQL, as part of MakeEnsure: the Job that makes the tables, and a look at whether the server takes writes."""

from __future__ import annotations

import hashlib

from konverge.objects import to_json
from konverge.objects.kinds.batch_v1 import Job
from konverge.operators.nacos.children.configmaps import mysql_config_map
from konverge.operators.nacos.children.mysqljob import SCRIPT_DIGEST, mysql_init_job
from konverge.operators.nacos.database import DatabaseError, mysql_script
from konverge.operators.nacos.pods import seconds_since
from konverge.operators.nacos.steps.pg_ensure import DATABASE_READY, failed, fingerprint
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.secrets import mysql_target
from konverge.operators.nacos.steps.stop import NORMAL, PARAMETER, SYSTEM, Stop
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER
from konverge.runtime import set_controller_reference

_CHECK_TIMEOUT = 10.0
_AGAIN_AFTER = 300.0
"""How long a Job that failed is left to be looked at before the next try."""


async def ensure_mysql_job(round: Round) -> bool:
    """The Job runs once for each script and server. One that failed is tried again."""
    if not round.wish.version.known:
        message = f"the tag of {round.wish.spec.image} does not tell the version of Nacos: set spec.version"
        raise Stop(PARAMETER, "VersionUnknown", message)
    version = round.wish.version
    script = mysql_script(version.line, default_admin=version < FIRST_WITHOUT_DEFAULT_USER)
    wrote = await round.ensure(mysql_config_map(round.wish, script))
    wanted = mysql_init_job(round.wish, "")
    digest = hashlib.sha256(script.encode() + to_json(wanted.spec)).hexdigest()[:16]
    wanted.metadata.annotations[SCRIPT_DIGEST] = digest
    live = await round.ctx.get(Job, wanted.metadata.name)
    if live is None:
        set_controller_reference(round.ctx.obj, wanted)
        await round.ctx.client.create(wanted)
        round.note("CREATE", "Job", wanted.metadata.name)
        return True
    if live.metadata.deletion_timestamp is not None:
        raise Stop(NORMAL, "InitJobRestarting", f"Job {live.metadata.name} is being made anew")
    if live.metadata.annotations.get(SCRIPT_DIGEST) != digest:
        return await round.delete(Job, live.metadata.name) or wrote
    await _look_at_job(round, live)
    return wrote


async def _look_at_job(round: Round, job: Job) -> None:
    over = next((one for one in job.status.conditions if one.type == "Failed" and one.status == "True"), None)
    if over is None:
        return
    if seconds_since(over.last_transition_time) >= _AGAIN_AFTER:
        await round.delete(Job, job.metadata.name)
    message = f"Job {job.metadata.name} failed ({over.message or over.reason}): see the logs of its pods"
    round.condition(DATABASE_READY, False, "InitJobFailed", message)
    raise Stop(SYSTEM, "InitJobFailed", message)


async def check_mysql(round: Round) -> None:
    """The same look that PGEnsure takes, without touching anything."""
    if not round.wish.spec.database.mysql_check:
        return
    target = await mysql_target(round)
    wanted = fingerprint(target)
    if round.tools.memory.fresh(round.key, wanted, round.options.database_interval) and round.is_true(DATABASE_READY):
        return
    try:
        await round.tools.databases.check(target, timeout=_CHECK_TIMEOUT)
    except DatabaseError as error:
        if error.reason == "DriverMissing":
            round.condition(DATABASE_READY, None, error.reason, error.message)
            round.tools.memory.note(round.key, wanted)
            return
        raise failed(round, error) from None
    round.tools.memory.note(round.key, wanted)
    round.condition(DATABASE_READY, True, "Writable", f"{target} takes writes")
