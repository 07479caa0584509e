"""What the user asked for at every rest of a run, and how two of its states differ.

Shared by the oracles about input. They compare states of one run: whenever the user asks for the same again, the
cluster has to be the same again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from konverge.check.differences import Masks
from konverge.check.model import Action, Apply, Checkpoint, Obj, Ref, Run, Step
from konverge.check.normal import compared, counted, made_by_others, normal
from konverge.check.reference import Reference

HISTORY = Masks(
    (
        r"[^:]*:metadata\.annotations\.(deployment\.kubernetes\.io/revision|kubectl\.kubernetes\.io/.*)",
        r"services:metadata\.finalizers.*",
        r"services:spec\.(externalTrafficPolicy|internalTrafficPolicy|allocateLoadBalancerNodePorts|healthCheckNodePort)",
        r"services:status\.loadBalancer.*",
        r"[^:]*:status\.(.*[gG]eneration|collisionCount|.*[rR]evision.*|.*[hH]istory.*)",
    )
)
"""What remembers how often something was changed, what the API server keeps of an earlier type of Service, and
addresses that a new Service is given."""


class Rested(NamedTuple):
    """A step, the state after it, and what the user had asked for by then."""

    step: Step
    checkpoint: Checkpoint
    desired: bytes


class Difference(NamedTuple):
    """How two states differ: `path` is empty where an object is missing (`actual` 0) or left over."""

    key: str
    path: str
    expected: Any
    actual: Any


def rests(run: Run) -> list[Rested]:
    """The steps that came to rest, in order. What was refused was not asked for."""
    steps = {step.name: step for step in run.steps}
    desired: dict[str, Obj] = {}
    rested = []
    for checkpoint in run.checkpoints:
        step = steps.get(checkpoint.step)
        if step is None:  # the state after something went wrong at rest
            continue
        if not checkpoint.refused:
            for action in step.actions:
                _ask(desired, action)
        rested.append(Rested(step, checkpoint, msgspec.json.encode(desired, order="sorted")))
    return rested


def _ask(desired: dict[str, Obj], action: Action) -> None:
    if isinstance(action, Apply):
        metadata = action.object["metadata"]
        desired[f"{action.object['kind']} {metadata.get('namespace', '')}/{metadata['name']}"] = action.object
    else:
        desired.pop(f"{action.kind} {action.namespace}/{action.name}", None)


def repeats(run: Run) -> Iterator[tuple[Rested, Rested, list[Step]]]:
    """Pairs of rests at which the user asked for the same, each with the last before it, and the steps between."""
    known = rests(run)
    for position, now in enumerate(known):
        if now.checkpoint.refused or not now.checkpoint.rested or not now.step.actions:
            continue
        for earlier in range(position - 1, -1, -1):
            before = known[earlier]
            if before.desired == now.desired and before.checkpoint.rested and not before.checkpoint.refused:
                if earlier < position - 1:
                    yield before, now, [item.step for item in known[earlier + 1 : position + 1]]
                break


def differing(before: Checkpoint, after: Checkpoint, run: Run, reference: Reference) -> list[Difference]:
    """What is not in the second state as in the first, and counts."""
    others = made_by_others((run, reference.run))
    ours, theirs = normal(before.state), normal(after.state)
    found: list[Difference] = []
    for key in sorted({*ours, *theirs}):
        derived = key not in others
        wanted, present = ours.get(key, []), theirs.get(key, [])
        least, most = counted(key, wanted, derived=derived), counted(key, present, derived=derived)
        if least != most and key not in reference.unsteady:
            found.append(Difference(key, "", least, most))
        resource = key.partition(" ")[0]
        for one, other in zip(wanted, present, strict=False):
            found += [
                Difference(key, path, left, right)
                for path, left, right in compared(key, one, other, reference.masks, derived=derived)
                if not HISTORY.hides(resource, path)
            ]
    return found


def changed_since(
    before: Rested, now: Rested, run: Run, reference: Reference, *, again: bool = False
) -> list[Difference]:
    """What differs between two rests at which the user asked for the same. Where the undisturbed run had asked for that
    too and was then as the second, the first is what differs: the operator was not done yet.

    `again`: it was deleted between them. Then the undisturbed run is asked what it is like when it is created again.
    """
    found = differing(before.checkpoint, now.checkpoint, run, reference)
    if not found:
        return found
    usual = [item for item in rests(reference.run) if item.desired == now.desired and item.checkpoint.rested]
    if not usual:
        return found
    like = usual[-1 if again else 0]
    wrong = {(item.key, item.path) for item in differing(like.checkpoint, now.checkpoint, run, reference)}
    return [item for item in found if (item.key, item.path) in wrong]


def _resources_of(step: Step) -> list[Ref]:
    """The custom resources that a step applies: more than one where all samples are created again."""
    return [
        Ref("", action.object["metadata"].get("namespace", ""), action.object["metadata"]["name"])
        for action in step.actions
        if isinstance(action, Apply) and "." in action.object["apiVersion"].partition("/")[0]
    ]


def is_own(key: str, step: Step) -> bool:
    """Whether an object is one of the custom resources that the step applies."""
    resource, _, name = key.partition(" ")
    group = resource.partition("/")[0]
    mine = {str(ref).partition(" ")[2] for ref in _resources_of(step)}
    return name in mine and "." in group and not group.endswith(".k8s.io")


_TELLING = re.compile(r"status\.(.*\.)?(status|phase|state|ready|health)", re.IGNORECASE)
_FAILED = re.compile(r"fail|error|invalid|refused|rejected|unsupported|forbidden|degraded|stalled", re.IGNORECASE)
_HEALTH = re.compile(r"ready|available|healthy", re.IGNORECASE)


def is_said(differences: Iterable[Difference], step: Step) -> bool:
    """Whether the custom resource's own status says that it is in another state: not ready, refused, failed."""
    return any(is_own(item.key, step) and _TELLING.fullmatch(item.path) for item in differences)


def is_refused(differences: Iterable[Difference], step: Step) -> bool:
    """Whether the custom resource says that a change was not carried out: a condition about more than readiness is
    False, or a phase names a failure."""
    telling = (item for item in differences if is_own(item.key, step) and _TELLING.fullmatch(item.path))
    return any(
        (str(item.actual) == "False" and not _HEALTH.search(item.path)) or _FAILED.search(str(item.actual))
        for item in telling
    )


def says_refused(obj: Obj) -> bool:
    """The same at one rest: a condition or phase that gives a failure as the reason, or errors that are listed."""
    shown = obj.get("status") or {}
    conditions = [item for item in shown.get("conditions") or () if isinstance(item, dict)]
    failed = any(_is_failure(item) for item in conditions)
    failed = failed or any(_FAILED.search(str(shown.get(field, ""))) for field in ("phase", "state"))
    return failed or any(_lists_errors(part) for part in (shown, *shown.values()))


def is_not_carried_out(rested: Rested, step: Step) -> bool:
    """Whether the custom resource says so at a rest: then it leads to nothing, old or new."""
    return any(says_refused(obj) for key, obj in rested.checkpoint.state.items() if is_own(key, step))


def _lists_errors(status: Any) -> bool:
    return isinstance(status, dict) and any(status.get(name) for name in ("error", "errors"))


def is_impossible(run: Run, checkpoint: Checkpoint) -> bool:
    """Whether the operator came to rest because the API server finds invalid what it wants to write: a field that
    no client can change, or a value that cannot be. Whatever else it would have done is not done either."""
    earlier = [item.time for item in run.checkpoints if item.time < checkpoint.time]
    last: dict[tuple[str, str, str], int] = {}
    for exchange in run.exchanges:
        if max(earlier, default=0.0) < exchange.began <= checkpoint.time:
            last[exchange.resource, exchange.namespace, exchange.name] = exchange.status
    return _INVALID in last.values()


_INVALID = 422


def says_unready(obj: Obj) -> bool:
    """Whether a custom resource says that it is not ready."""
    lists = [value for name, value in (obj.get("status") or {}).items() if name.lower().endswith("conditions")]
    conditions = [item for items in lists if isinstance(items, list) for item in items if isinstance(item, dict)]
    return any(_HEALTH.fullmatch(str(item.get("type"))) and item.get("status") == "False" for item in conditions)


def _is_failure(condition: Obj) -> bool:
    """It names one and is True; or it names something good, is not True, and gives a failure as the reason."""
    status, kind, reason = (str(condition.get(name, "")) for name in ("status", "type", "reason"))
    if status == "Unknown" and _FAILED.search(kind):
        return False
    named = {"True": kind, "False": reason, "Unknown": reason}.get(status, "")
    return _FAILED.search(named) is not None
