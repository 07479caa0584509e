"""Nothing is deleted, or deleted and made again, that stays when nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from konverge.check.model import Alarm, Change, Gap, Lag, OperatorAway, Perturbation, Run, Severity, TimePasses
from konverge.check.oracles.history import (
    deleted_in,
    deletions_begun,
    edited,
    identity,
    key,
    made_too_late,
    shared_steps,
    step_of,
)
from konverge.check.reference import Reference

PRECIOUS = frozenset(
    ("/persistentvolumeclaims", "/persistentvolumes", "/secrets", "apps/statefulsets", "apps/deployments")
)
"""With these go data, passwords, or all pods at once."""

DERIVED = frozenset(
    (
        "/pods",
        "apps/replicasets",
        "apps/controllerrevisions",
        "discovery.k8s.io/endpointslices",
        "/endpoints",
        "networking.k8s.io/ipaddresses",
        "batch/jobs",
        "storage.k8s.io/volumeattachments",
    )
)
"""Controllers of the cluster delete these for reasons of their own; only what the operator deletes itself counts."""


def deletions(run: Run, reference: Reference) -> Iterator[Alarm]:
    """More deletions of an object in a step than in the reference, or another uid after it."""
    if run is reference.run or any(_passes_unseen(item) for item in run.plan.perturbations):
        return  # after a deletion that passed unseen, what is left of it is deleted late, and rightly so
    steps = shared_steps(run, reference.run)
    normal, known = _counted(reference.run, steps), set(_present(reference.run))
    said: set[str] = set()
    for (step, name), changes in _counted(run, steps).items():
        usual = normal.get((step, name), [])
        if len(changes) <= len(usual) or (step, name) not in known or name in said or _is_collected(usual, changes):
            continue
        said.add(name)
        yield _alarm(run, step, changes, len(usual))
    yield from (alarm for alarm in _recreated(run, reference, steps) if alarm.object not in said)


def _present(run: Run) -> Iterator[tuple[int, str]]:
    """In which steps an object is there, if only for a moment.

    What the reference does not have in a step may go: others scaled a set up, and its operator takes back what came of
    it.
    """
    since: dict[tuple[str, str], int] = {}
    for change in run.changes:
        name = key(change)
        born = since.setdefault((name, change.uid), change.step if change.moment.type == "ADDED" else 0)
        if change.moment.type == "DELETED":
            yield from ((step, name) for step in range(born, change.step + 1))
            del since[name, change.uid]
    for (name, _), born in since.items():
        yield from ((step, name) for step in range(born, len(run.steps)))


def _is_collected(usual: list[Change], changes: list[Change]) -> bool:
    """An object that goes with its owner, as in the reference.

    The watches of two kinds are not in step: an operator may see that it is gone before it sees why, and make it again;
    then it is collected once more.
    """
    return bool(usual) and all(change.writer == "cluster" for change in (*usual, *changes))


def _passes_unseen(item: Perturbation) -> bool:
    return isinstance(item, Gap) or (isinstance(item, OperatorAway) and item.last > item.step)


def _counted(run: Run, steps: int) -> dict[tuple[int, str], list[Change]]:
    others, unused = edited(run), frozenset(_unused(run))
    lags = any(isinstance(item, Lag) or _is_outage(item) for item in run.plan.perturbations)
    counted: dict[tuple[int, str], list[Change]] = {}
    for change in _deletions(run):
        if change.writer == "user" or change.step >= steps or change.ref in others:
            continue
        if change.revision in unused:
            continue
        if (others or lags or change.ref.resource in DERIVED) and change.writer != "operator":
            continue  # what follows from an edit, or is made for an owner whose deletion is not seen yet
        counted.setdefault((change.step, key(change)), []).append(change)
    return counted


def _deletions(run: Run) -> Iterator[Change]:
    """What goes away, as the work of whoever asked for it."""
    begun = deletions_begun(run)
    for change in run.changes:
        if change.moment.type == "DELETED":
            yield msgspec.structs.replace(change, writer=begun.get(change.uid, change).writer)


def _unused(run: Run) -> Iterator[int]:
    """The revisions in which claims are deleted that were made too late to go with their custom resource, and that no
    pod has used since; and those of their volumes, which go with them.

    They hold no data. An operator that sees an old state may rightly clean up what is left of it.
    """
    late = made_too_late(run)
    made = {change.uid: change.step for change in run.changes if change.moment.type == "ADDED" and change.uid in late}
    pods = [change for change in run.changes if change.ref.resource == "/pods" and change.moment.type == "ADDED"]
    for change in run.changes:
        if change.moment.type == "DELETED" and change.uid in late:
            used = any(made[change.uid] < pod.step and pod.revision < change.revision for pod in pods)
            goes_along = change.ref.resource == "/persistentvolumes" and change.writer == "cluster"
            if goes_along or (change.ref.resource == "/persistentvolumeclaims" and not used):
                yield change.revision


def _is_outage(item: Perturbation) -> bool:
    """After which the watches come back one after the other: some lag behind the rest."""
    return isinstance(item, TimePasses) and item.away


def _alarm(run: Run, step: int, changes: list[Change], usual: int) -> Alarm:
    name, last = key(changes[-1]), changes[-1]
    again = any(
        change.moment.type == "ADDED" and change.revision > changes[0].revision and key(change) == name
        for change in run.changes
    )
    begun = deletions_begun(run).get(last.uid, last)
    unguarded = any(
        begun.revision in exchange.revisions and exchange.verb == "delete" and not exchange.guarded
        for exchange in run.exchanges
    )
    old_view = run.plan.pattern in ("stale", "gap", "own-writes") and unguarded
    how = " by a DELETE without precondition, decided on an old view" if old_view else ""
    severity: Severity = "high" if last.ref.resource in PRECIOUS or old_view else "medium"
    with_grace = last.ref.resource == "/pods" and begun.revision != last.revision
    if last.ref.resource == "batch/jobs" or (with_grace and not old_view):
        severity = "low"  # one more restart
    return Alarm(
        oracle="deletion",
        severity=severity,
        object=name,
        sentence=f"{name} is deleted{' and made again' if again else ''}{how}",
        step=run.steps[step].name,
        expected=usual,
        actual=len(changes),
    )


def _recreated(run: Run, reference: Reference, steps: int) -> Iterator[Alarm]:
    """Another uid at the next rest, where the reference kept it."""
    excused = edited(run)
    kept = _same_uid(reference.run, steps)
    for step, name in _other_uid(run, steps):
        ref = name.partition(" ")[0]
        resource = ref if "/" in ref else f"/{ref}"
        if (step, name) not in kept or resource not in PRECIOUS or any(str(item) == name for item in excused):
            continue
        yield Alarm(
            oracle="deletion",
            severity="high",
            object=name,
            field="metadata.uid",
            sentence=f"{name} is another object than before",
            step=run.steps[step].name,
        )


def _same_uid(run: Run, steps: int) -> set[tuple[int, str]]:
    return {(step, name) for step, name, same in _uids(run, steps) if same}


def _other_uid(run: Run, steps: int) -> list[tuple[int, str]]:
    return [(step, name) for step, name, same in _uids(run, steps) if not same]


def _uids(run: Run, steps: int) -> Iterator[tuple[int, str, bool]]:
    for before, after in zip(run.checkpoints, run.checkpoints[1:], strict=False):
        step = step_of(run, after)
        if step >= steps:
            return
        gone = deleted_in(run, step)
        for name in before.state.keys() & after.state.keys():
            one, other = before.state[name], after.state[name]
            if identity(one) not in gone:
                yield step, name, one["metadata"].get("uid") == other["metadata"].get("uid")
