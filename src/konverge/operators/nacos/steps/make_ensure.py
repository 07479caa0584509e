"""Step 4, MakeEnsure: everything that a Nacos is made of is there, as wished.

Standalone: ConfigMap, StatefulSet (1), Service. Cluster: ConfigMap, StatefulSet (N), headless and client Service. With
MySQL and an image for it: the script's ConfigMap and the Job. Objects that somebody changed or deleted are put right by
the same code; a round that had to write ends here, so that the next looks at what came of it.
"""

from __future__ import annotations

import hashlib

import msgspec

from konverge.client import AlreadyExists
from konverge.objects import Object
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos import names
from konverge.operators.nacos.children.budget import disruption_budget, wants_budget
from konverge.operators.nacos.children.configmaps import config_map, digest, final_config_map, merged_properties
from konverge.operators.nacos.children.ingress import ingress, wants_ingress
from konverge.operators.nacos.children.secrets import auth_secret
from konverge.operators.nacos.children.services import services
from konverge.operators.nacos.children.statefulset import stateful_set
from konverge.operators.nacos.spec import ConfigMapRef
from konverge.operators.nacos.steps.monitoring import ensure_monitor
from konverge.operators.nacos.steps.mysql import check_mysql, ensure_mysql_job
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.secrets import secrets_digest
from konverge.operators.nacos.steps.stop import NORMAL, PARAMETER, SYSTEM, Stop
from konverge.operators.nacos.steps.workload import ensure_stateful_set, next_size
from konverge.runtime import set_controller_reference


async def make_ensure(round: Round) -> None:
    round.step = "MakeEnsure"
    round.at_size(*await next_size(round))
    final = await _final_config(round)
    if round.wish.needs_auth_secret:
        await _ensure_auth_secret(round)
    wrote = await round.ensure(config_map(round.wish))
    if final is not None:
        wrote |= await round.ensure(final_config_map(round.wish, final))
    wrote |= await ensure_stateful_set(round, _built(round, final, await secrets_digest(round)))
    for service in services(round.wish):
        wrote |= await round.ensure(service)
    if round.wish.mysql_init:
        wrote |= await ensure_mysql_job(round)
    if wants_ingress(round.wish):
        wrote |= await round.ensure(ingress(round.wish), made="Exposed")
    wrote |= await ensure_monitor(round)
    wrote |= await _remove_unwished(round)
    round.status.config_digest = digest(final) if final is not None else ""
    round.status.version_digest = _version_digest(round)
    await _protect(round)
    if wrote:
        raise Stop(NORMAL, "Ensured", "; ".join(round.requests), progress=True)
    if round.wish.engine == "mysql":
        await check_mysql(round)


async def _final_config(round: Round) -> str | None:
    """The servers' application.properties, where the operator writes it: internal settings, then the user's."""
    spec = round.wish.spec
    if not round.wish.renders:
        return None
    internal = await _referred(round, spec.internal_config_ref, "internal.properties")
    user = await _referred(round, spec.user_config_ref, "user.properties")
    return merged_properties(round.wish, internal, user)


async def _referred(round: Round, ref: ConfigMapRef | None, default_key: str) -> str | None:
    if ref is None or not ref.name:
        return None
    found = await round.get(ConfigMap, ref.name)
    key = ref.key or default_key
    if found is None:
        message = f"get configmap {round.key.namespace}/{ref.name} failed: there is none; create it"
        raise Stop(SYSTEM, "ConfigMapMissing", message)
    if key not in found.data:
        raise Stop(PARAMETER, "ConfigMapMalformed", f"configmap {ref.name} missing key {key}")
    return found.data[key]


def _built(round: Round, final: str | None, secrets: str) -> Object:
    """The StatefulSet of this moment. An overlay that makes no PodSpec is the user's mistake."""
    config = final if final is not None else round.wish.spec.config
    try:
        return stateful_set(round.now, digest(config) if config else "", secrets)
    except msgspec.ValidationError as refused:
        raise Stop(PARAMETER, "PodSpecInvalid", f"spec.k8sWrapper.PodSpec: {refused}") from None


async def _ensure_auth_secret(round: Round) -> None:
    """Made once: another token would end every session, another identity would part the servers.

    The round ends with it, for the pods are made by what is in the Secret.
    """
    name = names.auth_secret(round.wish.name)
    if await round.ctx.get(Secret, name) is not None:
        return
    secret = auth_secret(round.wish)
    set_controller_reference(round.ctx.obj, secret)
    try:
        await round.ctx.client.create(secret)
    except AlreadyExists:
        raise Stop(NORMAL, "SecretUnseen", f"Secret {name} was made a moment ago") from None
    round.note("CREATE", "Secret", name)
    round.begin_again("SecretMade", f"Secret {name} was made")
    raise Stop(NORMAL, "SecretMade", f"Secret {name} was made", progress=True)


async def _protect(round: Round) -> None:
    """A budget for a cluster that has once been up: while it forms, evictions cost nothing."""
    if wants_budget(round.wish) and round.status.phase == "Running":
        await round.ensure(disruption_budget(round.wish), made="Protected")


async def _remove_unwished(round: Round) -> bool:
    """What an earlier wish needed: the Services of the other type, a budget, a configuration that nobody mounts."""
    wish = round.wish
    wished: dict[type[Object], set[str]] = {
        Service: {one.metadata.name for one in services(wish)},
        ConfigMap: {wish.name},
        Job: {names.mysql_init(wish.name)} if wish.mysql_init else set(),
        PodDisruptionBudget: {wish.name} if wants_budget(wish) else set(),
        Ingress: {wish.name} if wants_ingress(wish) else set(),
    }
    if wish.renders:
        wished[ConfigMap].add(wish.final_config)
    if wish.mysql_init:
        wished[ConfigMap].add(names.mysql_init(wish.name))
    removed = False
    for kind, kept in wished.items():
        for child in await round.ctx.owned(kind):
            if child.metadata.name not in kept and child.metadata.deletion_timestamp is None:
                removed |= await round.delete(kind, child.metadata.name)
    return removed


def _version_digest(round: Round) -> str:
    spec = msgspec.json.encode(round.ctx.obj.spec, order="deterministic")
    return hashlib.sha256(spec).hexdigest()[:10]
