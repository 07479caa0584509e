"""The part of MakeEnsure that is about MySQL: a Job creates the tables, a check tells whether the server takes writes.

The Job is for one line of Nacos and one server, by its digest. Until the Job of the desired line is complete, nothing
of that line is written: a server of the new line would start on the tables of the old one. Servers that run already go
on meanwhile, and are looked after.
"""

from __future__ import annotations

import hashlib

from konverge.objects import times, to_json
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.operators.nacos.children.config import mysql_config_map
from konverge.operators.nacos.children.mysql_job import SCRIPT_DIGEST, mysql_init_job
from konverge.operators.nacos.database import DatabaseError, mysql_script
from konverge.operators.nacos.steps.database import (
    DATABASE_READY,
    checked_recently,
    database_failed,
    fingerprint,
    known_version,
)
from konverge.operators.nacos.steps.outcome import CONTINUE, SYSTEM, Outcome, failed, wait
from konverge.operators.nacos.steps.secrets import mysql_target
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER

CHECK_TIMEOUT = 10.0
_FAILED = "InitJobFailed"
_RETRY_AFTER = 300.0
"""Seconds for which a failed Job is kept for users to look at, before the next attempt."""


async def ensure_mysql_job(state: ReconcileState) -> Outcome:
    """CONTINUE when the Job of this script and server is complete. One that failed is tried again."""
    version = known_version(state)
    script = mysql_script(version.line, default_admin=version < FIRST_WITHOUT_DEFAULT_USER)
    await state.ensure(mysql_config_map(state.desired, script))
    job = mysql_init_job(state.desired, "")
    digest = hashlib.sha256(script.encode() + to_json(job.spec)).hexdigest()[:16]
    job.metadata.annotations[SCRIPT_DIGEST] = digest
    name = job.metadata.name
    live = await state.reads.get(Job, name)
    if live is None:
        await state.create(job)
        return wait("InitJobCreated", f"Job {name} creates the tables of Nacos {version.line}", progress=True)
    if live.metadata.deletion_timestamp is not None:
        return wait("InitJobRestarting", f"Job {name} is being recreated")
    if live.metadata.annotations.get(SCRIPT_DIGEST) != digest:
        await state.delete(live)
        return wait("InitJobRestarting", f"Job {name} is recreated for Nacos {version.line}", progress=True)
    return await _result(state, live, version.line)


async def _result(state: ReconcileState, job: Job, line: str) -> Outcome:
    name = job.metadata.name
    if _condition(job, "Complete") is not None:
        if state.reason(DATABASE_READY) == _FAILED:
            state.condition(DATABASE_READY, None, "InitJobComplete", f"Job {name} is complete")
        return CONTINUE
    failure = _condition(job, "Failed")
    if failure is not None:
        if times.seconds_since(failure.last_transition_time) >= _RETRY_AFTER:
            await state.delete(job)
        message = f"Job {name} failed ({failure.message or failure.reason}): see the logs of its pods"
        state.condition(DATABASE_READY, False, _FAILED, message)
        return failed(SYSTEM, _FAILED, message)
    checked = await check_mysql(state)
    # The Job itself creates the database; it waits in silence for a server that is away.
    if checked.ends and checked.reason != "DatabaseDatabaseMissing":
        return checked
    return wait("InitJobRunning", f"Job {name} has not yet created the tables of Nacos {line}")


def _condition(job: Job, type: str) -> JobCondition | None:
    return next((entry for entry in job.status.conditions if entry.type == type and entry.status == "True"), None)


async def check_mysql(state: ReconcileState) -> Outcome:
    """The same check as in PGEnsure; it changes nothing."""
    if not state.desired.spec.database.mysql_check:
        return CONTINUE
    target = await mysql_target(state)
    settings = fingerprint(target)
    if checked_recently(state, settings):
        return CONTINUE
    try:
        await state.tools.databases.check(target, timeout=CHECK_TIMEOUT)
        state.condition(DATABASE_READY, True, "Writable", f"{target} takes writes")
    except DatabaseError as error:
        if error.reason != "DriverMissing":
            return database_failed(state, error)
        state.condition(DATABASE_READY, None, error.reason, error.message)
    state.tools.databases_checked.remember(state.key, settings)
    return CONTINUE
