"""A mistake of the user is refused, or reported, or at least does no harm that lasts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.oracles.desired import differing, is_own, is_said, rests
from konverge.check.oracles.recovery import recovery
from konverge.check.reference import Reference


def misoperation(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per mistake that did harm and of which the custom resource's status says nothing."""
    if run.plan.perturbations:
        return  # `state` judges what a fault leads to
    known = rests(run)
    lasting = {alarm.step for alarm in recovery(run, reference) if alarm.severity != "low"}
    for position, (before, now) in enumerate(pairwise(known)):
        if not now.step.expect or now.checkpoint.refused:
            continue
        harmed = _harmed(before.checkpoint, now.checkpoint)
        if not harmed or is_said(differing(before.checkpoint, now.checkpoint, run, reference), now.step):
            continue
        lasts = any(item.step.name in lasting for item in known[position + 1 :])
        yield Alarm(
            oracle="misoperation",
            severity="medium" if lasts else "low",
            object=next((key for key in now.checkpoint.state if is_own(key, now.step)), ""),
            field=now.step.about,
            sentence=f"{now.step.name}: {harmed} is no longer ready, and the status does not say so",
            step=now.step.name,
        )


def _harmed(before: Checkpoint, after: Checkpoint) -> str:
    """A workload that was ready, and has fewer ready pods than it should have now."""
    for key, obj in after.state.items():
        earlier = before.state.get(key)
        if earlier is not None and _is_ready(earlier) and not _is_ready(obj):
            return key
    return ""


def _is_ready(obj: Obj) -> bool:
    if obj.get("kind") not in ("StatefulSet", "Deployment", "DaemonSet"):
        return True
    status = obj.get("status") or {}
    wanted = (obj.get("spec") or {}).get("replicas", 1)
    updated = status.get("updatedReplicas", status.get("replicas", 0))
    return bool(status.get("readyReplicas", 0) >= wanted and updated >= wanted)
