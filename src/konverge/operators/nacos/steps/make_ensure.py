"""Step 4, MakeEnsure: all children of a Nacos exist and are as desired.

Standalone: ConfigMap, StatefulSet (1), Service. Cluster: ConfigMap, StatefulSet (N), headless and client Service. With
MySQL and an image for it: first the script's ConfigMap and the Job, and the rest when that is complete. The same code
repairs children that were changed or deleted. A reconcile that wrote anything ends here, and the next one looks at the
result.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from konverge.client import AlreadyExists
from konverge.objects import Object
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress, NetworkPolicy, NetworkPolicyEgressRule
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import config_map, digest, final_config_map, merged_properties
from konverge.operators.nacos.children.environment import auth_secret
from konverge.operators.nacos.children.member_list import reads_list
from konverge.operators.nacos.children.monitoring import dashboard, wants_dashboard
from konverge.operators.nacos.children.mysql_tls import has_store
from konverge.operators.nacos.children.network_policy import network_policy, wants_network_policy
from konverge.operators.nacos.children.services import ingress, service_names, services, wants_ingress
from konverge.operators.nacos.children.stateful_set import disruption_budget, stateful_set, wants_budget
from konverge.operators.nacos.spec.references import ConfigMapRef
from konverge.operators.nacos.steps.monitoring import ensure_monitoring
from konverge.operators.nacos.steps.mysql import check_mysql, ensure_mysql_job
from konverge.operators.nacos.steps.mysql_tls import ensure_mysql_tls
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, Outcome, StepError, wait
from konverge.operators.nacos.steps.pods import Workload, pods_of
from konverge.operators.nacos.steps.secrets import secrets_digest
from konverge.operators.nacos.steps.server_tls import check_server_tls
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.steps.stateful_set import (
    ensure_stateful_set,
    is_hibernated,
    listed_since,
    next_size,
    size_of,
)
from konverge.runtime.owners import is_controlled_by


async def make_ensure(state: ReconcileState) -> Outcome:
    desired = state.desired
    if state.unapplied is not None:
        return await _keep_running(state, state.unapplied)
    if state.held is not None:
        return await _restore_missing(state)
    if (outcome := await check_server_tls(state)).ends:
        return await _keep_running(state, outcome)
    if desired.engine == "mysql" and (outcome := await ensure_mysql_tls(state)).ends:
        return await _keep_running(state, outcome)
    if desired.mysql_init and (outcome := await ensure_mysql_job(state)).ends:
        return await _keep_running(state, outcome)
    size, listed = await next_size(state)
    state.at_size(size, listed, listed_since(await state.reads.get(StatefulSet, desired.name), listed))
    final = await _final_config(state)
    if (outcome := await _ensure_auth_secret(state)).ends:
        return outcome
    await state.ensure(config_map(replace(state.now, keeps_list=any(map(reads_list, pods_of(state))))))
    if final is not None:
        await state.ensure(final_config_map(desired, final))
    workload = _desired_stateful_set(state, final, await secrets_digest(state))
    if (outcome := await ensure_stateful_set(state, workload)).ends:
        return await _keep_running(state, outcome) if outcome.kind == "failed" else outcome
    for service in services(desired):
        await state.ensure(service)
    if wants_ingress(desired):
        await state.ensure(ingress(desired), created="Exposed")
    if wants_network_policy(desired):
        await _ensure_network_policy(state)
    if wants_dashboard(desired):
        await state.ensure(dashboard(desired), created="Plotted")
    await ensure_monitoring(state)
    await _remove_obsolete(state)
    state.status.config_digest = digest(final) if final is not None else ""
    state.status.version_digest = _version_digest(state)
    wrote = state.wrote  # the budget does not count: nothing depends on it
    await _ensure_budget(state)
    if wrote:
        return wait("Ensured", "; ".join(state.changes), progress=True)
    return await check_mysql(state) if desired.engine == "mysql" else CONTINUE


async def _keep_running(state: ReconcileState, outcome: Outcome) -> Outcome:
    """Nothing of the desired change is written yet, for the reason in `outcome`. Servers that run are looked after."""
    live = await state.reads.get(StatefulSet, state.desired.name)
    if live is None or state.wrote or is_hibernated(live):
        return outcome
    state.unapplied = outcome
    _keep_size(state, live)
    return CONTINUE


def _keep_size(state: ReconcileState, live: StatefulSet) -> None:
    size, listed = size_of(live, state.desired)
    state.at_size(size, listed, listed_since(live, listed))


async def _restore_missing(state: ReconcileState) -> Outcome:
    """While an edit is held: children that exist stay as they are, those that were deleted come back."""
    live = await state.reads.get(StatefulSet, state.desired.name)
    if live is None:  # deleted a moment ago, after PreCheck
        return wait("Recreating", f"StatefulSet {state.desired.name} is missing")
    _keep_size(state, live)
    children: list[Object] = [config_map(state.now), *services(state.desired)]
    final = await _final_config(state)
    if final is not None:
        children.append(final_config_map(state.desired, final))
    for child in children:
        if await state.reads.get(type(child), child.metadata.name) is None:
            await state.ensure(child)
    if has_store(state.desired) and await state.reads.get(ConfigMap, names.mysql_ca(state.desired.name)) is None:
        await ensure_mysql_tls(state)
    if state.wrote:
        return wait("Ensured", "; ".join(state.changes), progress=True)
    return await check_mysql(state) if state.desired.engine == "mysql" else CONTINUE


async def _final_config(state: ReconcileState) -> str | None:
    """The servers' application.properties, where the operator writes it: internal settings, then the user's."""
    spec = state.desired.spec
    if not state.desired.renders:
        return None
    internal = await _referred(state, spec.internal_config_ref, "internal.properties")
    user = await _referred(state, spec.user_config_ref, "user.properties")
    return merged_properties(state.desired, internal, user)


async def _referred(state: ReconcileState, ref: ConfigMapRef | None, default_key: str) -> str | None:
    if ref is None or not ref.name:
        return None
    config = await state.reads.get(ConfigMap, ref.name)
    key = ref.key or default_key
    if config is None:
        message = f"get configmap {state.key.namespace}/{ref.name} failed: there is none; create it"
        raise StepError(SYSTEM, "ConfigMapMissing", message)
    if key not in config.data:
        raise StepError(PARAMETER, "ConfigMapMalformed", f"configmap {ref.name} missing key {key}")
    return config.data[key]


def _desired_stateful_set(state: ReconcileState, final: str | None, secrets: str) -> StatefulSet:
    """The StatefulSet for this moment. An overlay that does not give a PodSpec is the user's mistake."""
    config = final if final is not None else state.desired.spec.config
    try:
        return stateful_set(state.now, digest(config) if config else "", secrets)
    except msgspec.ValidationError as error:
        raise StepError(PARAMETER, "PodSpecInvalid", f"spec.k8sWrapper.PodSpec: {error}") from None


async def _ensure_auth_secret(state: ReconcileState) -> Outcome:
    """Created once: another token would end every session, another identity would separate the servers.

    It ends the reconcile, because the pods are created from the values of the Secret.
    """
    name = names.auth_secret(state.desired.name)
    if not state.desired.needs_auth_secret:
        return CONTINUE
    live = await state.reads.get(Secret, name)
    if live is not None:
        metadata = state.desired.metadata(name)
        whole = metadata.labels.items() <= live.metadata.labels.items()
        if not whole or not is_controlled_by(live, state.ctx.obj):  # it was handed over, and keeps its values
            await state.ensure(Secret(metadata=metadata))
        return CONTINUE
    try:
        await state.create(auth_secret(state.desired))
    except AlreadyExists:
        return wait("SecretUnseen", f"Secret {name} was created a moment ago")
    state.begin_again("SecretMade", f"Secret {name} was created")
    return wait("SecretMade", f"Secret {name} was created", progress=True)


async def _ensure_network_policy(state: ReconcileState) -> None:
    name = state.desired.name
    live = await state.reads.get(NetworkPolicy, name)
    workload = Workload(await state.reads.get(StatefulSet, name), pods_of(state))
    kept = [] if workload.of_one_template and not state.wrote else _open_to(live, workload)
    await state.ensure(network_policy(state.desired, kept), created="Shielded")


def _open_to(live: NetworkPolicy | None, workload: Workload) -> list[NetworkPolicyEgressRule]:
    """What servers of an earlier template may connect to. It is narrowed when the last of them is replaced, and not
    before: their database may be another one."""
    if not workload.pods:
        return []
    if live is None or "Egress" not in live.spec.policy_types:
        return [NetworkPolicyEgressRule()]  # everything
    return live.spec.egress


async def _ensure_budget(state: ReconcileState) -> None:
    """For a cluster that has been up: while it forms, evictions do no harm."""
    if wants_budget(state.desired) and state.status.phase == "Running":
        await state.ensure(disruption_budget(state.desired), created="Protected")


async def _remove_obsolete(state: ReconcileState) -> None:
    """Children of an earlier spec: the Services of the other type, a budget, a configuration that no pod mounts."""
    desired = state.desired
    needed: dict[type[Object], set[str]] = {
        Service: set(service_names(desired)),
        ConfigMap: {desired.name},
        Job: {names.mysql_init(desired.name)} if desired.mysql_init else set(),
        PodDisruptionBudget: {desired.name} if wants_budget(desired) else set(),
        Ingress: {desired.name} if wants_ingress(desired) else set(),
        NetworkPolicy: {desired.name} if wants_network_policy(desired) else set(),
    }
    if desired.renders:
        needed[ConfigMap].add(desired.final_config)
    if desired.mysql_init:
        needed[ConfigMap].add(names.mysql_init(desired.name))
    if wants_dashboard(desired):
        needed[ConfigMap].add(names.dashboard(desired.name))
    if has_store(desired):
        needed[ConfigMap].add(names.mysql_ca(desired.name))
    for kind, kept in needed.items():
        for child in await state.ctx.owned(kind):
            if child.metadata.name in kept or child.metadata.deletion_timestamp is not None:
                continue
            if child.metadata.name != names.mysql_ca(desired.name) or not _mounted(state, child.metadata.name):
                await state.delete(child)


def _mounted(state: ReconcileState, config: str) -> bool:
    """Whether a pod still has this ConfigMap among its volumes: without it, a container of that pod cannot restart."""
    volumes = (volume for pod in pods_of(state) for volume in pod.spec.volumes)
    return any(volume.config_map is not None and volume.config_map.name == config for volume in volumes)


def _version_digest(state: ReconcileState) -> str:
    spec = msgspec.json.encode(state.ctx.obj.spec, order="deterministic")
    return hashlib.sha256(spec).hexdigest()[:10]
