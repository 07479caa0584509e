"""Preflight: what has to be given before an upgrade changes anything.

The user can allow an upgrade once in spite of it (`nacos.io/allow-change: upgrade=3.0.3`), but not without a database.
"""

from __future__ import annotations

import msgspec

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos.database import DatabaseError
from konverge.operators.nacos.steps.pods import is_ready, pods_of
from konverge.operators.nacos.steps.secrets import mysql_target, postgres_target
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.steps.stateful_set import is_hibernated, size_of
from konverge.operators.nacos.steps.upgrade.backups import check_backup
from konverge.operators.nacos.steps.upgrade.plan import path_problem
from konverge.operators.nacos.versions import NacosVersion

_MYSQL_TIMEOUT = 10.0


class Problem(msgspec.Struct, frozen=True):
    """Why an upgrade does not go on: a word for the status, and what to do."""

    reason: str
    message: str


PAUSED = Problem("UpgradePaused", "spec.upgrade.paused is true: set it to false to go on")


async def find_problem(
    state: ReconcileState, live: StatefulSet | None, before: NacosVersion, after: NacosVersion
) -> Problem | str:
    """The first problem; else the name of the backup, empty where none is asked for."""
    if message := path_problem(before, after):
        return Problem("VersionPathUnknown" if after.known else "VersionUnknown", message)
    if message := _too_few_members(state, live):
        return Problem("TooFewMembers", message)
    within = state.desired.spec.upgrade.require_backup_within
    if not within:
        return ""
    backup = await check_backup(state, within)
    return backup.name or Problem(backup.reason, backup.message)


def _too_few_members(state: ReconcileState, live: StatefulSet | None) -> str:
    """Servers that are down are replaced first and cost nothing more; but without a majority nothing may be taken away.

    By what the servers answered last; before each one is replaced, all are asked again.
    """
    if not state.desired.cluster or is_hibernated(live):
        return ""
    up = {server.pod_name for server in state.status.servers if server.status == "true"}
    free = [pod for pod in pods_of(state) if is_ready(pod) and pod.metadata.name in up]
    size = size_of(live, state.desired)[0] if live is not None else state.desired.replicas
    needed = size // 2 + 1
    if len(free) >= needed:
        return ""
    return f"{len(free)} of {size} servers are up, and a majority of {needed} is needed: repair them first"


async def database_problem(state: ReconcileState) -> DatabaseError | None:
    """Asked now, whenever it was asked before; nothing is known where only the pods can reach the database."""
    desired = state.desired
    if desired.engine == "embedded" or (desired.engine == "mysql" and not desired.spec.database.mysql_check):
        return None
    mysql = desired.engine == "mysql"
    target = await (mysql_target(state) if mysql else postgres_target(state))
    timeout = _MYSQL_TIMEOUT if mysql else desired.spec.pg_init.timeout_seconds
    try:
        await state.tools.databases.check(target, timeout=timeout)
    except DatabaseError as error:
        return None if error.reason == "DriverMissing" else error
    return None
