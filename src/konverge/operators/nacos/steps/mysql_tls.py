"""The part of MakeEnsure that is about TLS to MySQL: nothing of another setting is written before a connection with it
has succeeded.

A server that cannot connect exits at its start, so a wrong mode, name or authority would be found by the first server
that is restarted for it. The operator connects in the same way before, and where that fails, the servers go on with
what they have. A setting that is taken back is tried too: servers then connect without TLS, which may be refused.

Another authority in the Secret is handed on when it is proven; the servers read it for new connections, none restarts.
"""

from __future__ import annotations

from msgspec.structs import replace

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos.children.mysql_tls import driver_parameters, has_store, trust_config_map
from konverge.operators.nacos.database import DatabaseError, Target, Tls, tls_context
from konverge.operators.nacos.desired import MYSQL_PARAMETERS
from konverge.operators.nacos.steps.database import database_failed
from konverge.operators.nacos.steps.mysql import CHECK_TIMEOUT
from konverge.operators.nacos.steps.outcome import CONTINUE, Outcome, StepError
from konverge.operators.nacos.steps.secrets import mysql_target
from konverge.operators.nacos.steps.state import ReconcileState


async def ensure_mysql_tls(state: ReconcileState) -> Outcome:
    """Fails where nothing of the desired change can be written; the servers that run are to be looked after."""
    desired = state.desired
    live = await state.reads.get(StatefulSet, desired.name)
    present, wanted = _parameters(live, desired.name), driver_parameters(desired)
    if not wanted and "sslMode=" not in present:
        return CONTINUE
    if any(variable.name == MYSQL_PARAMETERS for variable in desired.spec.env):
        return CONTINUE  # the user's own parameters, of which nothing is known
    try:
        target = await mysql_target(state)
        if not wanted:
            target = replace(target, tls=Tls(mode="disable"))
        tls_context(target.tls)
    except StepError as error:
        return error.outcome
    except DatabaseError as error:
        return database_failed(state, error)
    store = trust_config_map(desired, target.tls.ca) if has_store(desired) else None
    changes = present != wanted or await _is_another(state, store)
    if changes and (outcome := await _prove(state, target, exists=live is not None)).ends:
        return outcome
    if store is not None:
        await state.ensure(store, created="Trusted")
    return CONTINUE


def _parameters(live: StatefulSet | None, name: str) -> str:
    """With which the servers were started."""
    containers = live.spec.template.spec.containers if live is not None else []
    variables = (variable for container in containers if container.name == name for variable in container.env)
    return next((variable.value or "" for variable in variables if variable.name == MYSQL_PARAMETERS), "")


async def _is_another(state: ReconcileState, store: ConfigMap | None) -> bool:
    if store is None:
        return False
    live = await state.reads.get(ConfigMap, store.metadata.name)
    return live is None or live.data != store.data


async def _prove(state: ReconcileState, target: Target, *, exists: bool) -> Outcome:
    """Whether servers can connect. Where none exists yet, only TLS matters: the check at the end finds all else."""
    if not state.desired.spec.database.mysql_check:
        return CONTINUE
    try:
        await state.tools.databases.check(target, timeout=CHECK_TIMEOUT)
    except DatabaseError as error:
        if error.reason == "TlsFailed" or (exists and error.reason != "DriverMissing"):
            return database_failed(state, error)
    return CONTINUE
