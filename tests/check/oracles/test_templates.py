"""A custom resource that owns nothing, beside others that do, is one from which these are made."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Alarm, Apply, Delete, Run, Step
from konverge.check.oracles.templates import lowered
from konverge.check.reference import reference_of
from tests.check.oracles.histories import KEY, THING, History, obj

TEMPLATE = {**THING, "kind": "Template", "metadata": {"name": "t", "namespace": "default"}}
OWNER = [{"kind": "Thing", "name": "a", "uid": "uid-Thing-a"}]
BOTH = (Apply(THING), Apply(TEMPLATE))
AGAIN = "size: grow, created again"


def played(changed: dict[str, Any], *, owned: bool = True) -> Run:
    """Two custom resources; a field of one is changed; all is made again."""
    steps = (
        Step("create", BOTH),
        Step("size: grow", (Apply(changed),), about="spec.size"),
        Step("deleted", (Delete("example.dev/v1", "Thing", "default", "a"),)),
        Step(AGAIN, BOTH, about="spec.size"),
    )
    state = {
        KEY: obj("Thing", apiVersion="example.dev/v1", metadata={"uid": "uid-Thing-a"}),
        "example.dev/templates default/t": obj("Template", "t", apiVersion="example.dev/v1"),
        "services default/a": obj("Service", apiVersion="v1", metadata={"ownerReferences": OWNER} if owned else {}),
    }
    history = History(steps, pattern="input")
    for _ in steps:
        history.rest(state)
    return history.run


def severity(run: Run, oracle: str = "path-dependence", step: str = AGAIN, whole: Run | None = None) -> str:
    alarm = Alarm(oracle=oracle, severity="high", object="services default/a", sentence="", step=step)
    return lowered([alarm], run, reference_of(whole or run, whole or run))[0].severity


@pytest.mark.spec("K-104")
def test_a_run_that_was_made_smaller_has_but_the_template() -> None:
    alone = (Step("create", (Apply(TEMPLATE),)), Step("size: grow", (Apply(TEMPLATE),), about="spec.size"))
    small = History(alone, pattern="input")
    for _ in alone:
        small.rest({"example.dev/templates default/t": obj("Template", "t", apiVersion="example.dev/v1")})
    assert severity(small.run, "effect", "size: grow", played(TEMPLATE)) == "low"
    assert severity(small.run, "effect", "size: grow") == "high", "nobody knows of any other"


@pytest.mark.spec("K-104")
@pytest.mark.parametrize("step", ["size: grow", AGAIN])
@pytest.mark.parametrize("oracle", ["effect", "path-dependence"])
def test_what_a_change_of_a_template_does_not_reach_is_a_note(oracle: str, step: str) -> None:
    assert severity(played(TEMPLATE), oracle, step) == "low"
    assert severity(played(THING), oracle, step) == "high", "it owns a Service"


@pytest.mark.spec("K-104")
def test_all_else_keeps_its_severity() -> None:
    assert severity(played(TEMPLATE), "deletions") == "high"
    assert severity(played(TEMPLATE), step="create") == "high", "no field was changed"
    assert severity(played(TEMPLATE, owned=False)) == "high", "an operator that sets no owners"
