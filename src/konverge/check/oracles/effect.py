"""A change of the custom resource has an effect: on some object, or on its own status.

Only where nothing at all happened is it an alarm, and a guess: many fields are for a later time (a retention, a
schedule). It is no guess where the field is of a built-in type that an operator hands on (labels, tolerations, an
image), and where an earlier change of the same field had an effect. It stays one where the operator tries and the API
server refuses, since such a field is immutable, where a value is taken away that may be the default, where items of a
list are only put in another order, and where the part that the field is of was switched on just before, and that had no
effect either: what it needs may not be there. An image that the user had not named may be that of such a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from konverge.check.inputs.paths import ABSENT, get
from konverge.check.model import Alarm, Apply, Run, Severity, Step
from konverge.check.oracles.desired import (
    Difference,
    Rested,
    differing,
    is_impossible,
    is_not_carried_out,
    is_own,
    is_said,
    rests,
)
from konverge.check.oracles.path_dependence import path_dependence
from konverge.check.oracles.recovery import recovery
from konverge.check.reference import Reference

HANDED_ON = frozenset(
    {
        "Affinity", "Annotations", "Containers", "EnvVars", "Image", "Labels", "NodeSelector", "PodSecurityContext",
        "Probe", "Replicas", "ResourceRequirements", "SecurityContext", "ServiceType", "Tolerations",
        "TopologySpreadConstraints", "Volumes", "StorageSize",
    }
)  # fmt: skip
"""Types of fields that only make sense in an object that the operator makes."""


def effect(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per field whose change led to nothing. A fault may keep one from being seen: `state` judges that."""
    if run.plan.perturbations:
        return
    effective: set[str] = set()
    idle: set[str] = set()
    said: set[str] = set()
    known = rests(run)
    asked: set[bytes] = set()
    spoilt = {alarm.step for oracle in (path_dependence, recovery) for alarm in oracle(run, reference)}
    for before, now in pairwise(known):
        asked.add(before.desired)
        if before.step.name in spoilt:
            return  # what is left over from an earlier change may keep the operator from later ones
        step = now.step
        if not step.about or step.expect or now.checkpoint.refused or not now.checkpoint.rested:
            continue
        if before.step.expect or now.desired in asked or not _changed(before, now):
            continue  # the way back is judged by path dependence and recovery
        differences = differing(before.checkpoint, now.checkpoint, run, reference)
        if any(not is_own(item.key, step) for item in differences):
            effective.add(step.about)
            continue
        idle.add(step.about)
        if _is_in_status(differences, step):
            continue  # it is said, at least
        if all(is_not_carried_out(item, step) for item in (before, now)):
            continue  # one value that cannot be carried out in place of another
        if step.about not in said and not _is_held(known[0], before, run, reference):
            said.add(step.about)
            of_idle = (before.step.about != step.about and before.step.about in idle) or _is_of_more(differences, step)
            guess = of_idle or _is_default(before, now) or _is_order(before, now) or is_impossible(run, now.checkpoint)
            guess = guess or (step.core == "Image" and _value(before, now) is ABSENT)
            yield _alarm(now, again=step.about in effective, guess=guess)


def _is_in_status(differences: list[Difference], step: Step) -> bool:
    """Whether the status tells of the change. Of what is meant for another object it is not enough to repeat it, nor to
    sum up the custom resource: such a digest changes whatever is done."""
    written = [item.actual for item in differences if item.path.startswith("spec.")]
    told = [item for item in differences if item.path.startswith("status.")]
    if step.core in HANDED_ON:
        told = [item for item in told if item.actual not in written and not _DIGEST.search(item.path)]
    return bool(told)


_DIGEST = re.compile(r"(digest|checksum|hash)$", re.IGNORECASE)


def _is_of_more(differences: list[Difference], step: Step) -> bool:
    """Whether another field of the custom resource was changed as well: the part was switched on in the same step."""
    field = step.about.partition("[")[0]
    asked = [item.path for item in differences if is_own(item.key, step) and item.path.startswith("spec.")]
    return any(not path.startswith(field) and not field.startswith(path) for path in asked)


def _is_held(first: Rested, before: Rested, run: Run, reference: Reference) -> bool:
    """Whether the operator says that something is wrong already: then it may rightly do nothing."""
    return is_said(differing(first.checkpoint, before.checkpoint, run, reference), before.step)


def _changed(before: Rested, now: Rested) -> bool:
    """Whether the API server has another value than before: a default that is written out is none."""
    return bool(_value(before, now) != _value(now, now))


def _is_default(before: Rested, now: Rested) -> bool:
    """Whether one value was taken away: the operator may choose the same where the user says nothing."""
    return _value(now, now) is ABSENT and not isinstance(_value(before, now), dict | list)


def _is_order(before: Rested, now: Rested) -> bool:
    """Whether a list has the same items in another order, which only some lists mean."""
    one, other = _value(before, now), _value(now, now)
    return isinstance(one, list) and isinstance(other, list) and sorted(map(repr, one)) == sorted(map(repr, other))


def _value(rested: Rested, now: Rested) -> Any:
    for key, obj in rested.checkpoint.state.items():
        if is_own(key, now.step):
            return get(obj, _parts(now.step.about))
    return ABSENT


def _parts(about: str) -> tuple[str | int, ...]:
    """Up to the first list: which item it is may have changed."""
    return tuple(about.partition("[")[0].split("."))


def _alarm(now: Rested, *, again: bool, guess: bool) -> Alarm:
    step = now.step
    severity: Severity = "medium" if not guess and (again or step.core in HANDED_ON) else "low"
    what = "has no effect any more" if again else "has no effect on anything"
    resource = next((key for key in now.checkpoint.state if is_own(key, step)), "")
    applied = next((item.object for item in reversed(step.actions) if isinstance(item, Apply)), {})
    return Alarm(
        oracle="effect",
        severity=severity,
        object=resource,
        field=step.about,
        sentence=f"a change of {step.about} ({step.name.rpartition(': ')[2]}) {what}",
        step=step.name,
        expected="a change of some object or of the status",
        actual=_shown(get(applied, _parts(step.about))),
    )


def _shown(value: Any) -> Any:
    return None if value is ABSENT else value
