"""What an object waits for that is being deleted: its finalizers, and who would remove them. Pure."""

from __future__ import annotations

from konverge.explain.links import is_custom, links
from konverge.explain.model import Health, Ref, Verdict
from konverge.explain.reading import Obj, holds, mapping, number, text
from konverge.explain.rules.operators import operator_deployments
from konverge.explain.sentences import say
from konverge.explain.texts import listed
from konverge.explain.world import World, finalizers

PATIENCE = 30.0
"""Seconds that a deletion may take before it is one that waits."""


def judge_deletion(ref: Ref, obj: Obj, world: World) -> Verdict:
    """Of an object with a deletionTimestamp."""
    grace = number(obj, "metadata", "deletionGracePeriodSeconds")
    left = finalizers(obj)
    # The timestamp is the end of the grace period.
    late = not world.now or world.is_older(obj, PATIENCE, "metadata", "deletionTimestamp")
    if not left:
        return _ending(ref, obj, world, grace, late)
    blame = _blockers(ref, obj, left, world)
    names = listed(f"`{name}`" for name in left)
    if not late:
        return Verdict(Health.PROGRESSING, say("is being deleted (finalizers: {names})", names=names), waits_for=blame)
    says = (
        say("is being deleted, and waits until its finalizer {names} is removed", names=names)
        if len(left) == 1
        else say("is being deleted, and waits until its finalizers {names} are removed", names=names)
    )
    if not blame and _is_foreign(left) and not _operators(ref, obj, world):
        says = say("{text}, by a controller of which no trace was seen", text=says)
    advice = say("start the controller that removes it; remove it by hand only if its clean-up is not needed")
    return Verdict(Health.WAITING, says, cause="finalizer", waits_for=blame, advice=advice)


def _ending(ref: Ref, obj: Obj, world: World, grace: int, late: bool) -> Verdict:
    node = Ref("Node", text(obj, "spec", "nodeName"))
    if ref.kind == "Pod" and node.name and holds(world.get(node) or {}, "Ready") in ("False", "Unknown"):
        says = say("is being deleted, and its node {name} does not confirm that it has ended", name=node.name)
        return Verdict(Health.WAITING, says, waits_for=(node,), cause="node")
    health = Health.WAITING if late else Health.PROGRESSING
    return Verdict(health, say("is being deleted"), cause="deletion" if late else "")


def _blockers(ref: Ref, obj: Obj, left: list[str], world: World) -> tuple[Ref, ...]:
    """The objects that finalizers wait for."""
    if "foregroundDeletion" in left:
        return tuple(world.owned(ref))
    if "kubernetes.io/pvc-protection" in left:
        return tuple(pod for pod in world.of_kind("Pod", ref.namespace) if _mounts(pod, ref, world))
    if "kubernetes.io/pv-protection" in left:
        claim = mapping(obj, "spec", "claimRef")
        name = Ref("PersistentVolumeClaim", text(claim, "name"), text(claim, "namespace"))
        return (name,) if world.get(name) is not None else ()
    return tuple(
        ref for ref in _operators(ref, obj, world) if not number(world.get(ref), "status", "availableReplicas")
    )


def _mounts(pod: Ref, claim: Ref, world: World) -> bool:
    phase = text(world.get(pod), "status", "phase")
    return phase not in ("Succeeded", "Failed") and any(link.ref == claim for link in links(pod, world))


def _operators(ref: Ref, obj: Obj, world: World) -> list[Ref]:
    return operator_deployments(ref, obj, world) if is_custom(ref.group) else []


def _is_foreign(left: list[str]) -> bool:
    """Not removed by Kubernetes itself."""
    return any(
        "kubernetes.io/" not in name and name not in ("foregroundDeletion", "orphan", "kubernetes") for name in left
    )
