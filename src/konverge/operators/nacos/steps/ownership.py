"""A Nacos writes only what its own uid controls; an object of the same name that belongs to others is left alone.

The runtime refuses each such write. Here the names of all children are looked at before the first write of a
reconcile, so that a clash leaves nothing half made. An object is handed over by the annotation
`konverge.dev/adopt-by: Nacos/<name>` on it.

Volume claims are not controlled by a Nacos: they may outlive it, and serve the next one of its name. Those of a
StatefulSet carry the labels of its selector, and by these they are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.client import NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress, NetworkPolicy
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos import names
from konverge.operators.nacos.children.monitoring import wants_dashboard
from konverge.operators.nacos.children.mysql_tls import has_store
from konverge.operators.nacos.children.network_policy import wants_network_policy
from konverge.operators.nacos.children.pod_template import has_claim
from konverge.operators.nacos.children.services import service_names, wants_ingress
from konverge.operators.nacos.children.stateful_set import wants_budget
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, Outcome, failed
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.runtime import NotOwned, controller_of
from konverge.runtime.owners import ADOPT_BY, is_controlled_by, require_ownership

NOT_OWNED = "NotOwned"


async def refuse_foreign(state: ReconcileState) -> Outcome:
    """Fails when a child's name is taken. Servers that run already are looked after: only writes of children wait."""
    problem = await _clash(state) or await _foreign_claim(state)
    if not problem:
        return CONTINUE
    outcome = failed(PARAMETER, NOT_OWNED, problem)
    live = await state.reads.get(StatefulSet, state.desired.name)
    if live is None or not is_controlled_by(live, state.ctx.obj):
        return outcome
    state.unapplied = outcome
    return CONTINUE


async def _clash(state: ReconcileState) -> str:
    """The first child whose name belongs to an object of others."""
    for kind, name in _children(state.desired):
        live = await state.reads.get(kind, name)
        if live is None or is_controlled_by(live, state.ctx.obj):
            continue
        try:
            require_ownership(state.ctx.obj, _named(kind, name), to_dict(live)["metadata"])
        except NotOwned as error:
            return str(error)
    return ""


def _children(desired: Desired) -> list[tuple[type[Object], str]]:
    """Kinds and names of all that MakeEnsure may write; what watches it is not cached, and has its own conditions."""
    children: list[tuple[type[Object], str]] = [(StatefulSet, desired.name), (ConfigMap, desired.name)]
    children += [(Service, name) for name in service_names(desired)]
    if desired.renders:
        children.append((ConfigMap, desired.final_config))
    if desired.mysql_init:
        script = names.mysql_init(desired.name)
        children += [(ConfigMap, script), (Job, script)]
    if has_store(desired):
        children.append((ConfigMap, names.mysql_ca(desired.name)))
    if desired.needs_auth_secret:
        children.append((Secret, names.auth_secret(desired.name)))
    if wants_budget(desired):
        children.append((PodDisruptionBudget, desired.name))
    if wants_ingress(desired):
        children.append((Ingress, desired.name))
    if wants_network_policy(desired):
        children.append((NetworkPolicy, desired.name))
    if wants_dashboard(desired):
        children.append((ConfigMap, names.dashboard(desired.name)))
    return children


def _named(kind: type[Object], name: str) -> Object:
    child = kind()
    child.kind, child.metadata.name = kind.resource.kind, name
    return child


# ------------------------------------------------------------------ volume claims


def is_our_claim(state: ReconcileState, claim: PersistentVolumeClaim) -> bool:
    """One that the StatefulSet made, for this Nacos or an earlier one of its name; or one that was handed over."""
    if claim.metadata.annotations.get(ADOPT_BY) == _adopter(state):
        return True
    owner = controller_of(claim)
    owned = owner is None or (owner.kind == "StatefulSet" and owner.name == state.desired.name)
    return owned and names.selector(state.desired.name).items() <= claim.metadata.labels.items()


def claims_of(state: ReconcileState) -> list[PersistentVolumeClaim]:
    """Our claims, by the number of their server."""
    prefix = names.claim(state.desired.name, 0).removesuffix("0")
    claims = state.reads.indexed(PersistentVolumeClaim, BY_APP, f"{state.key.namespace}/{state.desired.name}")
    numbered = {claim.metadata.name.removeprefix(prefix): claim for claim in claims if is_our_claim(state, claim)}
    return [numbered[number] for number in sorted(filter(str.isdecimal, numbered), key=int)]


def type_of_data(claims: Sequence[PersistentVolumeClaim]) -> str:
    """Of the servers whose embedded data is in these claims: as is noted on them, else by their number."""
    noted = [text for claim in claims if (text := claim.metadata.annotations.get(names.DATA_OF))]
    return noted[0] if noted else "cluster" if len(claims) > 1 else "standalone"


def _adopter(state: ReconcileState) -> str:
    return f"{state.ctx.obj.kind}/{state.desired.name}"


async def _foreign_claim(state: ReconcileState) -> str:
    """Of servers that are about to be created: Kubernetes would give them whatever has the claim's name.

    They are read from the API server: the cache only has claims with our labels.
    """
    desired = state.desired
    if not has_claim(desired):
        return ""
    live = await state.reads.get(StatefulSet, desired.name)
    first = (live.spec.replicas or 0) if live is not None and live.spec.volume_claim_templates else 0
    known = {claim.metadata.name for claim in claims_of(state)}
    for number in range(first, desired.replicas):
        name = names.claim(desired.name, number)
        if name in known:
            continue
        try:
            claim = await state.ctx.client.get(PersistentVolumeClaim, name, desired.namespace)
        except NotFound:
            continue
        if not is_our_claim(state, claim):
            return (
                f"PersistentVolumeClaim {name} exists and is not of this Nacos: its volume would become that of pod "
                f"{names.pod(desired.name, number)}; delete or rename it, or hand it over with the annotation "
                f"{ADOPT_BY}: {_adopter(state)}"
            )
    return ""
