"""No text of a finding has a value of a Secret."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Delete, Plan, Run, Step
from konverge.check.oracles.path_dependence import path_dependence
from konverge.check.oracles.recovery import recovery
from konverge.check.oracles.state import state
from konverge.check.redaction import HIDDEN
from tests.check.oracles.histories import KEY, THING, History, obj, reference

LOGIN = "secrets default/a"
REAL, OTHER = {"data": {"password": "aHVudGVyMg=="}}, {"data": {"password": "Y2hhbmdlZA=="}}
CREATE = Step("create", (Apply(THING),))
UP = Step("up", (Apply({**THING, "spec": {"size": 2}}),), about="spec.size")
MISTAKE = Step("up", UP.actions, about="spec.size", expect="harmless")
BACK = Step("back", (Apply(THING),), about="spec.size")
GONE = Step("delete", (Delete("example.dev/v1", "Thing", "default", "a"),))


def run(steps: tuple[Step, ...], *secrets: dict[str, Any], pattern: Any = "input") -> Run:
    history = History(steps, pattern)
    history.change("ADDED", LOGIN)
    for content in secrets:
        history.rest({KEY: {**obj("Thing"), **THING}, LOGIN: obj("Secret", **content)})
    history.run.plan = Plan(pattern, steps=steps)
    return history.run


def said(oracle: Any, made: Run, usual: dict[str, Any]) -> list[str]:
    undisturbed = History((CREATE,))
    undisturbed.run = run((CREATE,), usual)
    return [alarm.sentence for alarm in oracle(made, reference(undisturbed)) if alarm.object == LOGIN]


@pytest.mark.spec("K-145")
@pytest.mark.parametrize(
    ("usual", "present", "sentence"),
    [
        (REAL, OTHER, f"data.password of {LOGIN} stays {HIDDEN} (without the fault: {HIDDEN})"),
        (REAL, {"data": {}}, f"data.password of {LOGIN} stays absent (without the fault: {HIDDEN})"),
        ({}, OTHER, f"data of {LOGIN} stays {HIDDEN} (without the fault: absent)"),
        ({"type": "a"}, {"type": "b"}, f"type of {LOGIN} stays 'b' (without the fault: 'a')"),
    ],
)
def test_what_is_different_for_ever(usual: dict[str, Any], present: dict[str, Any], sentence: str) -> None:
    assert said(state, run((CREATE,), present, pattern="crash"), usual) == [sentence]


@pytest.mark.spec("K-145")
@pytest.mark.parametrize(
    ("oracle", "change", "why"),
    [
        (path_dependence, UP, "although spec.size was changed back"),
        (recovery, MISTAKE, "although the mistake (up) was taken back"),
    ],
)
def test_what_stays_as_it_was_changed(oracle: Any, change: Step, why: str) -> None:
    steps = (CREATE, change, BACK)
    assert said(oracle, run(steps, REAL, OTHER, OTHER), REAL) == [
        f"data.password of {LOGIN} stays {HIDDEN} (before: {HIDDEN}), {why}"
    ]
    assert said(oracle, run(steps, REAL, {}, {}), REAL) == [f"data of {LOGIN} is absent (before: {HIDDEN}), {why}"]
    kinds = ({"type": "a"}, {"type": "b"}, {"type": "b"})
    assert said(oracle, run(steps, *kinds), kinds[0]) == [f"type of {LOGIN} stays 'b' (before: 'a'), {why}"]


@pytest.mark.spec("K-145")
def test_what_a_new_custom_resource_leads_to() -> None:
    made = run((CREATE, GONE, BACK), {}, {}, REAL)
    assert said(path_dependence, made, {}) == [
        f"data of {LOGIN} is {HIDDEN} (before: absent) once the same custom resource was created again"
    ]
