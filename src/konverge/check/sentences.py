"""One sentence about a finding, as a colleague would say it: what was done to the operator, and what came of it.

A perturbation is named by what surrounds it in the reference: "a crash between deleting StatefulSet rabbit and resizing
claim data-0" says more than the write that it came after.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from konverge.check.budget import shown
from konverge.check.model import (
    Alarm,
    ApplicationFault,
    Crash,
    Edit,
    Exchange,
    Gap,
    Lag,
    LateOwnWrites,
    LeaderLost,
    Moment,
    OperatorAway,
    Perturbation,
    Place,
    Plan,
    Refuse,
    Run,
    Stale,
    Step,
    TimePasses,
)
from konverge.check.names import Names
from konverge.check.reference import Reference

_ANSWERS = {
    "conflict": "is answered by a conflict",
    "error": "is answered by an internal error",
    "unavailable": "is answered by 503",
    "throttled": "is answered by 429",
    "timeout": "times out",
    "lost": "takes effect and its answer is lost",
}
_TYPES = {"ADDED": "was created", "MODIFIED": "changed", "DELETED": "was deleted"}


def sentence(plan: Plan, alarm: Alarm, steps: Sequence[Step], reference: Reference, names: Names) -> str:
    """What was done, and what the alarm says."""
    causes = [_cause(item, reference, names) for item in plan.perturbations]
    if not causes:
        causes = [_of_steps(plan, alarm, steps)]
    said = " and ".join(cause for cause in causes if cause)
    what = names.in_text(alarm.sentence)
    return f"{said}, {what}" if said else what


def _cause(item: Perturbation, reference: Reference, names: Names) -> str:
    match item:
        case Crash():
            return _crash(item, reference.run, names)
        case Refuse():
            often = f" {item.times} times" if item.times > 1 else ""
            return f"when {doing(item.place, names, reference.run)} {_ANSWERS[item.answer]}{often}"
        case Stale():
            when = "before" if item.before else "right after"
            kind = names.kind(item.resource)
            moment, until = _moment(item.since, names), _moment(item.until, names)
            return f"after a restart (once {until}) whose cache shows {kind} as it was {when} {moment}"
        case Lag() | Gap():
            return _late(item, names)
        case LateOwnWrites():
            return f"when the operator sees its own writes of {names.kind(item.resource)} {item.seconds:g} s late"
        case _:
            return _of_others(item, reference, names)


def _of_others(item: Perturbation, reference: Reference, names: Names) -> str:
    match item:
        case Edit(patch=None):
            return f"after another client deletes {names.spoken(item.ref.resource, item.ref.name)}"
        case Edit():
            fields = ", ".join(_leaves(item.patch or {}))
            return f"after another client changes {fields} of {names.spoken(item.ref.resource, item.ref.name)}"
        case ApplicationFault():
            return f"while {item.server} fails ({item.fault})"
        case LeaderLost():
            return f"after the operator lost its Lease right after {doing(item.place, names, reference.run)}"
        case TimePasses():
            away = "the API server was away for " if item.away else "nothing happened for "
            return f"after {away}{shown(item.seconds)}"
        case OperatorAway():
            names_of_steps = [step.name for step in reference.run.steps[item.step : item.last + 1]]
            until = f" to “{names_of_steps[-1]}”" if item.last > item.step else ""
            return f"after the operator was away during “{names_of_steps[0]}”{until}"
    return ""


def _crash(crash: Crash, run: Run, names: Names) -> str:
    if crash.when == "before":
        return f"after a crash right before {doing(crash.place, names, run)}"
    after = next_write(run, crash.place)
    if after is None or after.place is None:
        return f"after a crash right after {doing(crash.place, names, run)}"
    return f"after a crash between {doing(crash.place, names, run)} and {doing(after.place, names, run)}"


def next_write(run: Run, place: Place) -> Exchange | None:
    """The write that follows in the same step, if there is one."""
    writes = [exchange for exchange in run.exchanges if exchange.place is not None and exchange.status < 400]
    steps = {change.revision: change.step for change in run.changes}
    for write, following in pairwise(writes):
        if write.place == place:
            mine, next_step = (steps.get(item.revisions[0], -1) for item in (write, following))
            return following if mine == next_step else None
    return None


def _late(item: Lag | Gap, names: Names) -> str:
    kind = names.kind(item.resource)
    if isinstance(item, Gap):
        since, until = _moment(item.since, names), _moment(item.until, names)
        return f"when the operator never sees the time between “{since}” and “{until}”"
    until = f" until {_moment(item.until, names)}" if item.until is not None else ""
    return f"when the operator sees {kind} late (from the time that {_moment(item.since, names)}{until})"


def _moment(moment: Moment, names: Names) -> str:
    what = names.spoken(moment.resource, moment.name)
    if moment.type == "MODIFIED" and moment.change:
        return f"{_fields(moment.change)} of {what} changed"
    return f"{what} {_TYPES[moment.type]}"


def doing(place: Place, names: Names, run: Run) -> str:
    """A request of the operator, as a noun: "deleting StatefulSet rabbit"."""
    if place.verb in ("get", "list"):  # errors hit the first read of a resource, whatever object it is of
        return f"{'reading' if place.verb == 'get' else 'listing'} {names.kind(place.resource)} objects"
    what = names.spoken(place.resource, place.name)
    subresource = "/".join(place.resource.split("/")[2:])
    if place.verb == "deletecollection":
        return f"deleting several {names.kind(place.resource)} objects"
    if place.verb == "delete":
        return f"deleting {what}"
    if subresource not in ("", "status", "scale"):
        return f"creating the {subresource} of {what}"
    match _effect(place, run):
        case "ADDED":
            return f"creating {what}"
        case "DELETED":
            return f"removing the last finalizer of {what}"
    return f"writing the status of {what}" if subresource == "status" else _changing(place.change, what)


def _effect(place: Place, run: Run) -> str:
    """What a write did: an apply may have created its object, an update may have let it go."""
    if place.verb == "create":
        return "ADDED"
    revisions = next((exchange.revisions for exchange in run.exchanges if exchange.place == place), ())
    return next((change.moment.type for change in run.changes if change.revision in revisions), "MODIFIED")


def _changing(change: str, what: str) -> str:
    fields = change.split(",")
    if fields == ["spec.replicas"]:
        return f"scaling {what}"
    if any(field.startswith("spec.resources.requests.storage") for field in fields):
        return f"resizing {what}"
    return f"changing {_fields(change)} of {what}" if change else f"writing {what}"


def _fields(change: str) -> str:
    fields = change.split(",")
    return fields[0] if len(fields) == 1 else f"{fields[0]} and {len(fields) - 1} more"


def _of_steps(plan: Plan, alarm: Alarm, steps: Sequence[Step]) -> str:
    """For a run in which nothing went wrong but what the user did."""
    if plan.pattern == "reference" and not alarm.step:
        return ""
    step = next((step for step in steps if step.name == alarm.step.removesuffix(", then")), None)
    if step is None:
        return ""
    return f"after the step “{step.name}”"


def _leaves(patch: object, path: str = "") -> list[str]:
    if not isinstance(patch, dict) or not patch:
        return [path]
    return [leaf for key, value in patch.items() for leaf in _leaves(value, f"{path}.{key}" if path else str(key))]
