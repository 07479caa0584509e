"""What belongs to one custom resource selects no pod of another of its kind: a Service, a budget, a policy, a workload.

Of another kind it may: one that gives an address to others refers to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from konverge.check.folding import folded
from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.oracles.company import another
from konverge.check.oracles.history import custom_resources, identity, owned_by
from konverge.check.reference import Reference
from konverge.objects.labels import from_labels, from_selector_dict

_SELECTORS: Mapping[str, str] = {
    "services": "selector",
    "apps/deployments": "selector",
    "apps/statefulsets": "selector",
    "apps/daemonsets": "selector",
    "apps/replicasets": "selector",
    "policy/poddisruptionbudgets": "selector",
    "networking.k8s.io/networkpolicies": "podSelector",
}


def selection(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Where several custom resources are there: in the undisturbed run, and in one with another beside the first."""
    if run is not reference.run and another(run, reference) is None:
        return
    said: set[str] = set()
    for checkpoint in run.checkpoints:
        belongs = _belongs(run, checkpoint)
        for name, obj in checkpoint.state.items():
            if name in said or name not in belongs:
                continue
            taken = _taken(name, obj, checkpoint, belongs)
            if taken:
                said.add(name)
                yield _alarm(checkpoint, name, taken, belongs)


def _belongs(run: Run, checkpoint: Checkpoint) -> dict[str, str]:
    """The custom resource to which an object belongs; what belongs to several is left out."""
    mine, state = custom_resources(run), checkpoint.state
    belongs: dict[str, str] = {}
    shared: set[str] = set()
    for name, obj in state.items():
        if identity(obj) in mine:
            for child, _ in owned_by(obj, state):
                if belongs.setdefault(child, name) != name:
                    shared.add(child)
    return {child: name for child, name in belongs.items() if child not in shared and child not in belongs.values()}


def _taken(name: str, obj: Obj, checkpoint: Checkpoint, belongs: dict[str, str]) -> str:
    """A pod that an object selects and that belongs to another custom resource."""
    member = _SELECTORS.get(name.partition(" ")[0])
    selector = (obj.get("spec") or {}).get(member) if member else None
    if not selector or not any(selector.values()):  # an empty one means all pods, or none, on purpose
        return ""
    matches = (from_labels if name.startswith("services ") else from_selector_dict)(selector).matches
    namespace = obj["metadata"].get("namespace", "")
    for other, pod in checkpoint.state.items():
        if not other.startswith("pods ") or not _are_rivals(belongs.get(other, ""), belongs[name]):
            continue
        if pod["metadata"].get("namespace", "") == namespace and matches(pod["metadata"].get("labels") or {}):
            return other
    return ""


def _are_rivals(one: str, other: str) -> bool:
    """Two custom resources of a kind."""
    return one != other and one.partition(" ")[0] == other.partition(" ")[0]


def _alarm(checkpoint: Checkpoint, name: str, pod: str, belongs: dict[str, str]) -> Alarm:
    return Alarm(
        oracle="selection",
        severity="medium",
        object=folded(name),
        field="spec.selector",
        sentence=f"{name}, which belongs to {belongs[name]}, selects {folded(pod)}, which belongs to {belongs[pod]}",
        step=checkpoint.step,
    )
