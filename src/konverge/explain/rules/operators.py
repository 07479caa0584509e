"""Whether the operator of a custom resource is at work, and who that is. Pure.

Nothing in Kubernetes says which program looks after a kind. The traces are: who wrote the status of such objects
(managedFields), and Deployments and Leases whose names tell of the kind or of its group.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.explain.model import Health, Ref, Verdict
from konverge.explain.reading import Obj, items, mapping, moment, number, text
from konverge.explain.refusals import refusal
from konverge.explain.sentences import NOTHING, Sentence, say
from konverge.explain.world import World, message_of

PATIENCE = 30.0
"""Seconds in which an operator looks at a new object or a new spec."""
_WRITERS_BY_HAND = ("kubectl", "helm", "argocd", "flux", "before-first-apply", "unknown")
_COMMON = frozenset(("io", "com", "dev", "org", "net", "sh", "k8s", "apps", "app", "kubernetes", "operator", "example"))


def unseen_by_operator(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    """Its operator has not looked at the present spec, and why that may be. None: it has, or it cannot be known."""
    status, generation = mapping(obj, "status"), number(obj, "metadata", "generation")
    observed = number(status, "observedGeneration", default=-1)
    if observed < 0:
        observed = max(
            (number(entry, "observedGeneration", default=-1) for entry in items(status, "conditions")), default=-1
        )
    if status and (observed < 0 or observed >= generation):
        return None
    if not status and (ref.group, ref.kind) not in world.with_status and not _siblings_have_status(ref, world):
        return None
    what = say("has not looked at it") if observed <= 0 else say("has not looked at its present spec")
    if world.now and not world.is_older(obj, PATIENCE):
        return Verdict(Health.PROGRESSING, say("is about to be looked at by its operator"))
    for event in world.warnings(ref)[:5]:
        refused = refusal(message_of(event), ref.namespace, world)
        if refused is not None:
            return refused
    return _why_not(ref, obj, world, what)


def _siblings_have_status(ref: Ref, world: World) -> bool:
    return any(mapping(world.get(other), "status") for other in world.of_kind(ref.kind, "", ref.group)[:100])


def _why_not(ref: Ref, obj: Obj, world: World, what: Sentence) -> Verdict:
    deployments = operator_deployments(ref, obj, world)
    sick = tuple(entry for entry in deployments if not _runs(world.get(entry) or {}))
    if sick:
        says = say("waits for its operator, {kind} {name}", kind=sick[0].kind, name=sick[0].name)
        return Verdict(Health.WAITING, says, waits_for=sick, cause="operator")
    lease = next(iter(_leases(ref, obj, world)), None)
    if lease is not None and (why := _unheld(world.get(lease) or {}, world)):
        advice = say("start the operator, or see why it does not become the leader")
        whose = say("operator {what}: {why} its Lease `{lease}`", what=what, why=why, lease=lease.name)
        return Verdict(Health.WAITING, whose=whose, cause="operator-away", advice=advice)
    if deployments or lease is not None:
        who = (deployments[0] if deployments else lease).name  # type: ignore[union-attr]
        advice = say("see the operator's log, and whether it watches this namespace")
        whose = say("operator `{who}` runs, but {what}", who=who, what=what)
        return Verdict(Health.WAITING, whose=whose, cause="operator-idle", advice=advice)
    advice = say("start the operator that looks after {kind} objects", kind=ref.kind)
    whose = say("operator {what}, and none seems to run", what=what)
    return Verdict(Health.WAITING, whose=whose, cause="operator-away", advice=advice)


def _runs(deployment: Obj) -> bool:
    return number(deployment, "status", "availableReplicas") > 0


def operator_deployments(ref: Ref, obj: Obj, world: World) -> list[Ref]:
    """The Deployments that seem to look after a kind, those that say so the clearest first."""
    writers, hints = _writers(ref, obj, world), _hints(ref)
    ranked = []
    for kind in ("Deployment", "StatefulSet"):
        for candidate in world.of_kind(kind, group="apps"):
            rank = _rank(candidate.name, writers, hints)
            if rank and candidate not in world.owned(ref):
                ranked.append((-rank, candidate))
    return [candidate for _, candidate in sorted(ranked)]


def _leases(ref: Ref, obj: Obj, world: World) -> list[Ref]:
    writers, hints = _writers(ref, obj, world), _hints(ref)
    leases = world.of_kind("Lease", group="coordination.k8s.io")
    ranked = [(-rank, lease) for lease in leases if (rank := _rank(lease.name, writers, hints))]
    return [lease for _, lease in sorted(ranked)]


def _writers(ref: Ref, obj: Obj, world: World) -> set[str]:
    """Who wrote the status of this object and of others of its kind."""
    others = (world.get(other) or {} for other in world.of_kind(ref.kind, "", ref.group)[:20])
    return {name for each in (obj, *others) for name in _status_writers(each)}


def _status_writers(obj: Obj) -> Iterator[str]:
    for entry in items(obj, "metadata", "managedFields"):
        manager = text(entry, "manager").partition("/")[0]
        if text(entry, "subresource") == "status" and not manager.startswith(_WRITERS_BY_HAND):
            yield manager


def _hints(ref: Ref) -> set[str]:
    """What a name of the operator is likely to contain: the kind, and what is special about its group."""
    parts = [part for part in ref.group.lower().split(".") if part not in _COMMON and len(part) > 2]
    return {ref.kind.lower(), *parts}


def _rank(name: str, writers: set[str], hints: set[str]) -> int:
    low = name.lower()
    if any(writer.lower() == low for writer in writers):
        return 4
    named = any(sign in low for sign in ("operator", "controller", "manager"))
    if named and any(len(writer) > 3 and writer.lower() in low for writer in writers):
        return 3
    return 2 if named and any(hint in low for hint in hints) else 0


def _unheld(lease: Obj, world: World) -> Sentence:
    """What is wrong with a Lease, as what goes before `its Lease`; nothing when a holder renews it."""
    holder, seconds = text(lease, "spec", "holderIdentity"), number(lease, "spec", "leaseDurationSeconds", default=15)
    if not holder:
        return say("no process holds")
    renewed = moment(lease, "spec", "renewTime")
    if renewed is not None and world.now and world.now - renewed > 2 * seconds:
        return say("{holder} no longer renews", holder=holder)
    return NOTHING
