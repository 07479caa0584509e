"""Others change or delete what the operator made, and have objects of their own under the names that it uses.

Labels, selectors, ownerReferences and finalizers first: by these fields objects find each other, and a wrong one does
most harm (Mutiny, DSN'24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from konverge.check.folding import folded
from konverge.check.inputs.samples import deletion
from konverge.check.model import Apply, Checkpoint, Edit, Obj, Plan, Ref, Step, TimePasses
from konverge.check.oracles.foreign import FOREIGN, TAKEN_AWAY
from konverge.check.oracles.history import custom_resources, identity, is_clusters, owned_by
from konverge.check.plans.company import another_instance, beside, elsewhere, notes
from konverge.check.plans.foreign import stranger
from konverge.check.plans.order import owners_of
from konverge.check.plans.time import HOUR
from konverge.check.plans.tours import tours
from konverge.check.reference import Reference

_OTHERS = "changed-by-others"


def edits(reference: Reference) -> Iterator[Plan]:
    """At rest after the first step: each object deleted, then each of its fields that matter; then foreign objects.

    On virtual time, what is put right without a trace is tried in tours.
    """
    run = reference.run
    if not run.checkpoints or not run.checkpoints[0].rested:
        return
    first = run.checkpoints[0]
    targets = list(_targets(reference, first))
    changes = list(_changes(targets, _held_by_others(reference)))
    yield from _in_tours(reference, _deletions(targets))
    yield from (plan for plan in changes if _is_of_metadata(plan))
    yield from _in_tours(reference, (plan for plan in changes if not _is_of_metadata(plan)))
    yield from _of_custom_resources(reference, first)
    yield from _foreign(reference, first)
    yield from another_instance(reference)
    yield from elsewhere(reference)
    yield from notes(reference, targets)


def _in_tours(reference: Reference, plans: Iterable[Plan]) -> Iterable[Plan]:
    """On real time each rest of a tour would be waited for: there it is a run for each."""
    return plans if reference.run.snapshots else tours(plans, owners_of(reference))


def _deletions(targets: Sequence[tuple[Ref, Obj]]) -> Iterator[Plan]:
    for ref, obj in targets:
        if obj.get("kind") != "PersistentVolumeClaim":  # held by the pod that uses it, and by its data
            yield _plan(ref, None)


def _changes(targets: Sequence[tuple[Ref, Obj]], holding: set[str]) -> Iterator[Plan]:
    for ref, obj in targets:
        for patch in _patches(obj):
            if "finalizers" not in patch.get("metadata", ()) or str(ref) not in holding:
                yield _plan(ref, patch)


def _is_of_metadata(plan: Plan) -> bool:
    """Whether it may take an object out of the operator's hands: what comes after that says nothing."""
    return any(isinstance(item, Edit) and "metadata" in (item.patch or ()) for item in plan.perturbations)


def _plan(ref: Ref, patch: Obj | None, subresource: str = "") -> Plan:
    return Plan("edits", (Edit(ref, patch, 0, subresource),))


def _targets(reference: Reference, checkpoint: Checkpoint) -> Iterator[tuple[Ref, Obj]]:
    """What the operator made, or a custom resource owns; of pods of a workload the first alone."""
    made = {str(change.ref): change.ref for change in reference.run.changes}
    by_operator = {
        str(change.ref)
        for change in reference.run.changes
        if change.moment.type == "ADDED" and change.writer == "operator"
    }
    mine = custom_resources(reference.run)
    owned = {
        name
        for obj in checkpoint.state.values()
        if identity(obj) in mine
        for name, _ in owned_by(obj, checkpoint.state)
    }
    seen: set[str] = set()
    for name in sorted(checkpoint.state):
        obj = checkpoint.state[name]
        chosen = name in by_operator or (name in owned and obj.get("kind") == "Pod")
        if chosen and name in made and folded(name) == name and not obj["metadata"].get("deletionTimestamp"):
            if obj.get("kind") == "Pod" and name not in by_operator:
                if "Pod" in seen:
                    continue
                seen.add("Pod")
            yield made[name], obj


def _held_by_others(reference: Reference) -> set[str]:
    """What has finalizers of other controllers: it is theirs to put them back."""
    return {
        str(change.ref)
        for change in reference.run.changes
        for path, _, _ in change.differences
        if change.writer != "operator" and path.startswith("metadata.finalizers")
    }


def _patches(obj: Obj) -> Iterator[Obj]:
    metadata, spec = obj["metadata"], obj.get("spec")
    if obj.get("kind") in ("Pod", "Job"):  # what has run is history
        return
    if metadata.get("ownerReferences"):
        yield {"metadata": {"ownerReferences": None}}
    if metadata.get("labels"):
        yield {"metadata": {"labels": dict.fromkeys(metadata["labels"])}}
    if metadata.get("finalizers"):
        yield {"metadata": {"finalizers": None}}
    if isinstance(spec, dict):
        yield from _spec_patches(obj.get("kind", ""), spec)
    for field in ("data", "stringData"):
        if isinstance(obj.get(field), dict) and obj[field]:
            yield _data_patch(obj, field)
    if obj.get("rules"):
        yield {"rules": []}


def _data_patch(obj: Obj, field: str) -> Obj:
    key = next(iter(obj[field]))
    value = "Y2hhbmdlZA==" if obj.get("kind") == "Secret" and field == "data" else _OTHERS
    return {field: {key: value}}


def _spec_patches(kind: str, spec: Obj) -> Iterator[Obj]:
    if kind == "Service" and isinstance(spec.get("selector"), dict):
        yield {"spec": {"selector": {**dict.fromkeys(spec["selector"]), "app": _OTHERS}}}
    if isinstance(spec.get("replicas"), int):
        yield {"spec": {"replicas": spec["replicas"] + 1}}
        yield {"spec": {"replicas": 0}}
    if isinstance(spec.get("running"), bool):
        yield {"spec": {"running": not spec["running"]}}


# ------------------------------------------------------------------ the custom resource itself


def _of_custom_resources(reference: Reference, checkpoint: Checkpoint) -> Iterator[Plan]:
    """Its finalizers taken off, its status forgotten."""
    mine = custom_resources(reference.run)
    refs = {str(change.ref): change.ref for change in reference.run.changes}
    for name, obj in checkpoint.state.items():
        if identity(obj) not in mine or name not in refs:
            continue
        if obj["metadata"].get("finalizers"):
            yield _plan(refs[name], {"metadata": {"finalizers": None}})
        if isinstance(obj.get("status"), dict) and obj["status"]:
            yield _plan(refs[name], {"status": dict.fromkeys(obj["status"])}, "status")


# ------------------------------------------------------------------ objects of others


def _foreign(reference: Reference, checkpoint: Checkpoint) -> Iterator[Plan]:
    """An object with the name that the operator will use is there before: for each kind the first. It is still there
    when the custom resource is deleted; or others take it away, and an hour passes."""
    seen: set[str] = set()
    for ref, obj in _targets(reference, checkpoint):
        kind = obj.get("kind", "")
        if kind in seen or not is_clusters(obj.get("apiVersion", "v1")):
            continue
        other = stranger(obj)
        if other is not None:
            seen.add(kind)
            step = Step(FOREIGN.format(kind=kind, name=ref.name), (Apply(other),))
            yield Plan("edits", steps=(step, *beside(reference.run.steps)))
            if not reference.run.snapshots:  # on real time, the next attempt may be a quarter of an hour away
                gone = Step(TAKEN_AWAY.format(kind=kind, name=ref.name), (deletion(other),))
                yield Plan("edits", (TimePasses(2, HOUR),), steps=(step, reference.run.steps[0], gone))
