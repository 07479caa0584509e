"""The same request leads to the same state: what was added and removed is as if it had never been."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.check.differences import ABSENT, is_digest
from konverge.check.inputs.core_types import snake
from konverge.check.inputs.paths import ABSENT as NOTHING
from konverge.check.inputs.paths import get
from konverge.check.model import Alarm, Apply, Delete, Run, Severity, Step
from konverge.check.oracles.desired import (
    Difference,
    Rested,
    changed_since,
    is_impossible,
    is_not_carried_out,
    is_own,
    is_refused,
    is_said,
    repeats,
)
from konverge.check.redaction import spoken_value
from konverge.check.reference import Reference
from konverge.objects.quantity import Quantity, QuantityError


def path_dependence(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per field that depends on the past; after mistakes of the user, `recovery` judges."""
    if run.plan.perturbations:
        return  # `state` judges what a fault leads to
    said: set[tuple[str, str, str]] = set()
    for before, now, between in repeats(run):
        if any(step.expect for step in between):
            continue
        differences = changed_since(before, now, run, reference)
        again = is_again(between)
        held = (is_said if again else is_refused)(differences, now.step) or _is_order(between)
        held = held or (again and all(is_not_carried_out(item, now.step) for item in (before, now)))
        follows = _is_told_otherwise(differences, now.step, _about(between), again=again)
        follows = follows or (again and any(is_impossible(run, item.checkpoint) for item in (before, now)))
        for difference in own(differences):
            if again and is_generated(difference, now):
                continue
            alarm = _alarm(difference, now, between, held=held)
            if alarm.severity == "high" and (follows or (again and is_fixed(difference))):
                alarm = msgspec.structs.replace(alarm, severity="medium")
            if alarm.group not in said:
                said.add(alarm.group)
                yield alarm


def own(differences: list[Difference]) -> list[Difference]:
    """Without what follows from others: the status of an object whose spec differs, and its pods."""
    decided = {item.key for item in differences if item.path.startswith(("spec.", "data."))}
    decided = {key for key in decided if not key.startswith("pods ")}
    return [
        item
        for item in differences
        if not (item.key in decided and item.path.startswith("status."))
        and not _is_stamp(item)
        and not (item.key.startswith("pods ") and decided)
    ]


def _is_stamp(difference: Difference) -> bool:
    """An annotation that holds a time, and nothing else: when something was done, which stays true."""
    if "annotations" not in difference.path:
        return False
    sides = [value for value in (difference.expected, difference.actual) if value != ABSENT]
    return all(set(value.values() if isinstance(value, dict) else (str(value),)) == {"<time>"} for value in sides)


def is_again(between: list[Step]) -> bool:
    return any(isinstance(action, Delete) for step in between for action in step.actions)


_HARDWARE = re.compile(r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}", re.IGNORECASE)


def is_generated(difference: Difference, now: Rested) -> bool:
    """What a new object has of its own: passwords, and network interfaces' addresses that the user did not ask for."""
    if difference.key.startswith("secrets ") and difference.path.startswith("data."):
        return True
    sides, asked = (str(difference.expected), str(difference.actual)), now.desired.decode().lower()
    return all(_HARDWARE.fullmatch(side) and side.lower() not in asked for side in sides)


_ORDERS = frozenset(
    {
        "action", "bootstrap", "command", "initial", "pause", "paused", "power", "restart", "restore", "run", "running",
        "start", "started", "state", "stop", "stopped", "suspend", "suspended",
    }
)  # fmt: skip
"""Words of fields that give an order, such as to stop, or that count when something begins: to withdraw an order is not
the opposite order."""


def _is_order(between: list[Step]) -> bool:
    return any(_ORDERS.intersection(re.split(r"[^a-z]+", snake(step.about))) for step in between)


def _about(between: list[Step]) -> str:
    """The field that was changed last."""
    return next((step.about for step in reversed(between) if step.about), "")


def _is_told_otherwise(differences: list[Difference], step: Step, about: str, *, again: bool) -> bool:
    """Whether the custom resource itself asks for something else than before: the operator has written defaults to its
    spec, which stay when the user takes a value back and go with the object. The children rightly follow it."""
    paths = [item.path for item in differences if is_own(item.key, step) and item.path.startswith("spec.")]
    return any(again or path.startswith(about) or about.startswith(path) for path in paths if about)


_CHANGEABLE = {
    "apps/statefulsets": re.compile(
        r"metadata\.|spec\.(replicas|ordinals|template|updateStrategy|revisionHistoryLimit|minReadySeconds"
        r"|persistentVolumeClaimRetentionPolicy)\b"
    ),
    "batch/jobs": re.compile(
        r"metadata\.|spec\.(suspend|parallelism|completions|activeDeadlineSeconds|backoffLimit)\b"
    ),
}
"""Upstream: pkg/apis/apps/validation, ValidateStatefulSetUpdate; pkg/apis/batch/validation."""


def is_fixed(difference: Difference) -> bool:
    """Whether it is a field that is immutable on the API server: another value needs another object."""
    changeable = _CHANGEABLE.get(difference.key.partition(" ")[0])
    return changeable is not None and bool(difference.path) and not changeable.match(difference.path)


def _alarm(difference: Difference, now: Rested, between: list[Step], *, held: bool) -> Alarm:
    """`held`: the operator says that it does not change this of an object that is there, or the field is an order."""
    about = _about(between)
    past = f"{about} was changed back" if about else "the custom resource is the same as before"
    text = f"{sentence(difference)}, although {past}"
    if is_again(between):
        text = f"{_once_new(difference)} once the same custom resource was created again"
    return Alarm(
        oracle="path-dependence",
        severity="low" if held else severity(difference, now.step, asked=_is_asked(difference, about, between)),
        object=difference.key,
        field=difference.path,
        sentence=text,
        step=now.step.name,
        expected=difference.expected,
        actual=difference.actual,
    )


def sentence(difference: Difference) -> str:
    key, path, expected, actual = difference
    if not path:
        return (
            f"{key} is missing" if not actual else f"{key} is left over" if not expected else f"{key}: {actual} of them"
        )
    shown = "is absent" if actual == ABSENT else f"stays {_short(key, path, actual)}"
    return f"{path} of {key} {shown} (before: {'absent' if expected == ABSENT else _short(key, path, expected)})"


def _once_new(difference: Difference) -> str:
    """What a new custom resource leads to: the same had led to something else when it was reached by a change."""
    key, path, expected, actual = difference
    if not path:
        return sentence(difference)
    shown, before = ("absent" if value == ABSENT else _short(key, path, value) for value in (actual, expected))
    return f"{path} of {key} is {shown} (before: {before})"


def _short(key: str, path: str, value: object) -> str:
    text = spoken_value(key, path, value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_asked(difference: Difference, about: str, between: list[Step]) -> bool:
    """Whether the user had asked for what is there on one side alone: the field's name or what was written to it tells.

    What is there on both sides is the operator's own, and changed.
    """
    sides = [value for value in (difference.expected, difference.actual) if value != ABSENT]
    if len(sides) != 1 or not about:
        return False
    named = about.rpartition(".")[2].partition("[")[0]
    written = {leaf for step in between for leaf in _leaves(_written(step, about))}
    shown = set(_leaves(sides[0]))
    return named in difference.path or (bool(shown) and shown <= written)


def _written(step: Step, about: str) -> Any:
    """What a step gives to a field, up to the first list in its path."""
    applied = next((action.object for action in reversed(step.actions) if isinstance(action, Apply)), {})
    return get(applied, tuple(about.partition("[")[0].split(".")))


def _leaves(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif value is not NOTHING:
        yield str(value)


_VOLUMES = frozenset(("persistentvolumeclaims", "persistentvolumes", "cdi.kubevirt.io/datavolumes"))
"""A DataVolume is a claim with where its content came from: it goes with its claim, and its spec is immutable."""


def severity(difference: Difference, step: Step, *, asked: bool = False) -> Severity:
    """A field that an operator decides is high, and so is an annotation that the user asked for; pods that stay behind
    are medium; volumes, digests and texts of a status low."""
    key, path, expected, actual = difference
    resource = key.partition(" ")[0]
    if is_digest(path, expected, actual) and not asked:
        return "low"
    if resource in _VOLUMES or is_own(key, step) or _is_larger(difference):
        return "low"  # volumes outlive what used them; the custom resource's own status is judged by others
    if path.startswith("status.") and _is_foreign(resource):
        return "low"  # what another operator says of its own object
    if resource in ("pods", "batch/jobs") or path.startswith("status."):
        return "medium"
    if not path and resource == "secrets":
        return "low"  # often kept on purpose: what it holds was given to others
    if ("metadata.annotations" in path and not asked) or (not path and resource == "configmaps"):
        return "medium"
    return "high"


_CLAIMS = re.compile(r"spec\.volumeClaimTemplates\[.*\]\.spec\.resources\.requests\.storage")


def _is_larger(difference: Difference) -> bool:
    """A template of claims that asks for more than before, as the claims do: a volume cannot shrink."""
    if not _CLAIMS.fullmatch(difference.path):
        return False
    try:
        return Quantity(difference.actual) > Quantity(difference.expected)
    except (QuantityError, TypeError):
        return False


def _is_foreign(resource: str) -> bool:
    group, slash, _ = resource.partition("/")
    return bool(slash) and "." in group and not group.endswith(".k8s.io")
