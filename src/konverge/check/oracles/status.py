"""The status of a custom resource tells the truth: at rest, and when it says for the first time that all is ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.check.folding import folded
from konverge.check.inputs.asked_for import is_paused
from konverge.check.model import Alarm, Change, Checkpoint, Obj, Run
from konverge.check.oracles.desired import says_refused
from konverge.check.oracles.history import key, news, owned_by, resources_at, step_of
from konverge.check.reference import Reference

READY = frozenset(("Ready", "Available", "AllReplicasReady", "ClusterAvailable"))
PHASES = frozenset(("ready", "running", "available", "healthy", "active", "online"))
WORKLOADS = frozenset(("Deployment", "StatefulSet", "DaemonSet"))


def status(run: Run, reference: Reference) -> Iterator[Alarm]:
    """What the reference says as well is said of the reference alone."""
    return news(_lies, run, reference)


def _lies(run: Run) -> Iterator[Alarm]:
    for checkpoint in run.checkpoints:
        if not checkpoint.rested or checkpoint.blind:
            continue
        for name, obj in resources_at(run, checkpoint):
            if not obj["metadata"].get("deletionTimestamp") and not is_paused(obj):
                yield from _behind(checkpoint, name, obj)
                yield from _not_ready(checkpoint, name, obj)
    yield from _before_looking(run)


def _lie(
    checkpoint: Checkpoint, name: str, field: str, sentence: str, expected: int, actual: int, *, low: bool = False
) -> Alarm:
    return Alarm(
        oracle="status",
        severity="low" if low else "medium",
        object=folded(name),
        field=field,
        sentence=sentence,
        step=checkpoint.step,
        expected=expected,
        actual=actual,
    )


def _behind(checkpoint: Checkpoint, name: str, obj: Obj) -> Iterator[Alarm]:
    generation, shown = obj["metadata"].get("generation", 0), obj.get("status")
    if not isinstance(shown, dict):
        return
    observed = shown.get("observedGeneration")
    if isinstance(observed, int) and isinstance(generation, int) and 0 <= observed < generation:
        sentence = f"status.observedGeneration of {name} stays {observed} at generation {generation}"
        # Some count what they have carried out, and say in a condition that they do not carry out the last change.
        refused = says_refused(obj)
        yield _lie(checkpoint, name, "status.observedGeneration", sentence, generation, observed, low=refused)


def says_ready(obj: Obj) -> str:
    """The field by which a custom resource says that all is well."""
    shown = obj.get("status")
    if not isinstance(shown, dict):
        return ""
    telling = [
        condition
        for condition in shown.get("conditions") or ()
        if isinstance(condition, dict) and condition.get("type") in READY
    ]
    if telling:  # what a phase says besides is not asked
        well = all(condition.get("status") == "True" for condition in telling)
        return f"{telling[0]['type']}=True" if well else ""
    for field in ("phase", "state"):
        if isinstance(shown.get(field), str) and shown[field].lower() in PHASES:
            return f"{field} {shown[field]}"
    return ""


def _not_ready(checkpoint: Checkpoint, name: str, obj: Obj) -> Iterator[Alarm]:
    says = says_ready(obj)
    if not says:
        return
    for item, owned in owned_by(obj, checkpoint.state):
        wanted, ready = _pods(owned)
        if owned.get("kind") in WORKLOADS and ready < wanted:
            sentence = f"{name} says {says} while {item} has {ready} of {wanted} pods ready"
            yield _lie(checkpoint, name, "status", sentence, wanted, ready)


def _pods(workload: Obj) -> tuple[int, int]:
    spec, shown = workload.get("spec") or {}, workload.get("status") or {}
    if workload.get("kind") == "DaemonSet":
        return shown.get("desiredNumberScheduled", 0), shown.get("numberReady", 0)
    return spec.get("replicas", 1), shown.get("readyReplicas", 0)


# ------------------------------------------------------------------ ready before looking


def _before_looking(run: Run) -> Iterator[Alarm]:
    """Ready is said in a step that made workloads of the custom resource, before any of their pods was ready."""
    wanted = _wanted(run)
    fresh: dict[str, int] = {}
    for change in run.changes:
        name = str(change.ref)
        if change.moment.type == "ADDED":
            fresh[name] = 0
        elif change.moment.type == "DELETED":
            fresh.pop(name, None)
        for path, _, value in change.differences:
            if path in ("status.readyReplicas", "status.numberReady") and name in fresh and isinstance(value, int):
                fresh[name] = max(fresh[name], value)
        waiting = [item for item in wanted.get((change.step, name), ()) if fresh.get(item) == 0]
        if waiting and _turns_ready(change):
            yield Alarm(
                oracle="status",
                severity="medium",
                object=key(change),
                field="status before it is so",
                sentence=f"{name} says that it is ready while {waiting[0]} has no ready pod yet",
                step=run.steps[change.step].name,
            )


def _wanted(run: Run) -> dict[tuple[int, str], list[str]]:
    """The workloads of every custom resource that want pods, by step: as at the rest after it."""
    return {
        (step_of(run, checkpoint), name): [
            item
            for item, owned in owned_by(obj, checkpoint.state)
            if owned.get("kind") in WORKLOADS and _pods(owned)[0]
        ]
        for checkpoint in run.checkpoints
        for name, obj in resources_at(run, checkpoint)
    }


def _turns_ready(change: Change) -> bool:
    return any(_is_ready(path, value) for path, _, value in change.differences)


def _is_ready(path: str, value: Any) -> bool:
    if path in ("status.phase", "status.state"):
        return isinstance(value, str) and value.lower() in PHASES
    if path == "status":
        return isinstance(value, dict) and bool(says_ready({"status": value}))
    if path == "status.conditions":
        return isinstance(value, list) and bool(says_ready({"status": {"conditions": value}}))
    if path.startswith("status.conditions[") and path.endswith("].status"):
        return value == "True" and path[len("status.conditions[") : -len("].status")] in READY
    added = path.startswith("status.conditions[") and isinstance(value, dict)
    return added and bool(says_ready({"status": {"conditions": [value]}}))
