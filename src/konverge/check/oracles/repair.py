"""What an operator owes to those who change or delete what it has made.

It repairs that. But nobody can bring back data: a claim goes with the object that owned it, as soon as no pod uses it,
and what was taken at one moment (a snapshot, a backup) cannot be taken at that moment again. There an operator owes the
truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.check.differences import ABSENT
from konverge.check.folding import folded
from konverge.check.model import Alarm, Checkpoint, Edit, Obj, Run, Severity
from konverge.check.normal import normal
from konverge.check.oracles.history import (
    custom_resources,
    deleted_in,
    groups_of_custom_resources,
    identity,
    owned_by,
    step_of,
)
from konverge.check.oracles.status import says_ready
from konverge.check.reference import Reference

_CLAIMS = "persistentvolumeclaims "
_ANNOTATIONS = "metadata.annotations"
_OF_A_MOMENT = re.compile(r"(snapshot|backup)s$")


class Repair:
    """How bad it is that something is not as it was, in a run in which others have changed something."""

    def __init__(self, run: Run, reference: Reference, pairs: list[tuple[Checkpoint, Checkpoint]]) -> None:
        self._run = run
        self._pairs = pairs
        self._mine = custom_resources(run)
        self._groups = groups_of_custom_resources(run)
        self._deleted: set[str] = set()
        """What others have deleted."""
        self._with_it: set[str] = set()
        """What the cluster deletes with it."""
        for edit in run.plan.perturbations:
            if isinstance(edit, Edit) and edit.patch is None and edit.step < len(reference.run.checkpoints):
                state = reference.run.checkpoints[edit.step].state
                self._deleted.add(folded(str(edit.ref)))
                if (obj := state.get(str(edit.ref))) is not None:
                    self._with_it.update(folded(name) for name, _ in owned_by(obj, state))

    def judged(self, alarm: Alarm, actual: Checkpoint, expected: Checkpoint) -> Alarm:
        """The alarm, as bad as it is."""
        if self._is_told(alarm, actual, expected) or self._asks_for_the_same(alarm, expected):
            return _as(alarm, "low")
        if self._is_noted(alarm):
            return _as(alarm, "low")
        if self._comes_back(alarm):
            return _as(alarm, "medium")
        if alarm.object.startswith(_CLAIMS) and not alarm.field and (alarm.actual or alarm.object in self._with_it):
            return _as(alarm, "low")
        if alarm.field.startswith("metadata.ownerReferences"):
            # Without its owner an object stays as it is until the end, and most operators look again by then.
            return _as(alarm, "low")
        more = not alarm.field and bool(alarm.actual) and (not alarm.expected or alarm.object.startswith("pods "))
        return _as(alarm, "medium") if alarm.severity == "high" and (alarm.field or more) else alarm

    def _comes_back(self, alarm: Alarm) -> bool:
        """Whether what is missing is there again once the user has changed the custom resource."""
        steps = [checkpoint.step for checkpoint, _ in self._pairs]
        if alarm.field or alarm.actual or alarm.step not in steps:
            return False
        for checkpoint, _ in self._pairs[steps.index(alarm.step) + 1 :]:
            if deleted_in(self._run, step_of(self._run, checkpoint)):
                return False
            if alarm.object in normal(checkpoint.state):
                return True
        return False

    # -------------------------------------------------------------- what nobody can bring back

    def _is_told(self, alarm: Alarm, actual: Checkpoint, expected: Checkpoint) -> bool:
        """Whether it is data that others deleted, and the custom resource says that something is wrong."""
        if not self._deleted or not (self._is_held(actual) or any(map(_is_of_a_moment, self._deleted))):
            return False
        telling = set(self._turned(actual, expected))
        lost = alarm.object in self._deleted | self._with_it
        return bool(telling) and (lost or (alarm.object in telling and alarm.field.startswith("status.")))

    def _is_held(self, actual: Checkpoint) -> bool:
        """Whether a claim is being deleted, and stays for as long as a pod uses it (upstream: pvc-protection)."""
        return any(
            folded(name) in self._with_it
            and name.startswith(_CLAIMS)
            and bool(obj["metadata"].get("deletionTimestamp"))
            for name, obj in actual.state.items()
        )

    def _turned(self, actual: Checkpoint, expected: Checkpoint) -> Iterator[str]:
        """The custom resources that do not say any more that all is well."""
        for name, obj in actual.state.items():
            before = expected.state.get(name)
            if identity(obj) in self._mine and before is not None:
                ours, theirs = conditions(before), conditions(obj)
                lost = any(status == "True" and theirs.get(kind) == "False" for kind, status in ours.items())
                if lost or (says_ready(before) and not says_ready(obj)):
                    yield folded(name)

    # -------------------------------------------------------------- what the operator notes for itself

    def _is_noted(self, alarm: Alarm) -> bool:
        """Whether it is an annotation of the custom resource's own API group that there was not before: by it the
        operator remembers what others have done, and nobody else reads it."""
        if alarm.expected != ABSENT or not alarm.field.startswith(_ANNOTATIONS):
            return False
        added = alarm.actual if isinstance(alarm.actual, dict) else {alarm.field.removeprefix(f"{_ANNOTATIONS}."): ""}
        return bool(added) and all(key.partition("/")[0] in self._groups for key in added)

    # -------------------------------------------------------------- what was given once

    def _asks_for_the_same(self, alarm: Alarm, expected: Checkpoint) -> bool:
        """Whether an object that is made again asks for what the one before it had been given: an address, a port."""
        if alarm.object not in self._deleted or alarm.expected != ABSENT or not alarm.field.startswith("spec."):
            return False
        given = (obj.get("status") for name, obj in expected.state.items() if folded(name) == alarm.object)
        return any(alarm.actual in _values(status) for status in given)


def entries(obj: Obj) -> list[Obj]:
    """The conditions of an object."""
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    return [item for item in found or () if isinstance(item, dict)]


def conditions(obj: Obj) -> dict[str, str]:
    """Type -> status."""
    return {item.get("type", ""): item.get("status", "") for item in entries(obj)}


def _as(alarm: Alarm, severity: Severity) -> Alarm:
    return msgspec.structs.replace(alarm, severity=severity)


def _is_of_a_moment(name: str) -> bool:
    return _OF_A_MOMENT.search(name.partition(" ")[0]) is not None


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for entry in value.values() for item in _values(entry)]
    if isinstance(value, list):
        return [item for entry in value for item in _values(entry)]
    return [value]
