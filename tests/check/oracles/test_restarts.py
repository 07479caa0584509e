"""A restart alone replaces no pods."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.differences import Masks
from konverge.check.model import Apply, Step
from konverge.check.oracles import judge
from konverge.check.oracles.restarts import restarts
from konverge.check.reference import Reference, reference_of
from tests.check.oracles.histories import STEPS, THING, History, obj

STEP = (STEPS[0], Step("spec.size: 2", (Apply({**THING, "spec": {"size": 2}}),)))
SETS = "apps/statefulsets default/a"
SEEDED, DIGEST = "example.dev/build", "example.dev/config-digest"


def state(image: str = "one", uid: str = "1", **annotations: str) -> dict[str, Any]:
    notes = {SEEDED: "a", DIGEST: "5", **{name: annotations[name] for name in annotations}}
    template = {"metadata": {"annotations": notes}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {SETS: obj("StatefulSet", metadata={"uid": uid}, spec={"template": template})}


def run_of(first: dict[str, Any], second: dict[str, Any], pattern: Any = "crash") -> History:
    return History(STEP, pattern).change("ADDED", SETS).rest(first).rest(second)


def usual(second: dict[str, Any] | None = None, *masks: str) -> Reference:
    one, other = (run_of(state(**{SEEDED: seed}), second or state(**{SEEDED: seed})).run for seed in "ab")
    return reference_of(one, other, Masks(masks))


def said(history: History, reference: Reference) -> list[tuple[str, str]]:
    return [(alarm.field.rpartition("annotations.")[2], alarm.severity) for alarm in restarts(history.run, reference)]


@pytest.mark.spec("K-136")
def test_what_is_not_compared_with_the_reference_stays_as_it_was_in_the_same_run() -> None:
    assert said(run_of(state(**{SEEDED: "z"}), state(**{SEEDED: "z"})), usual()) == []
    assert said(run_of(state(), state(**{SEEDED: "z"})), usual()) == [(SEEDED, "medium")]
    assert said(run_of(state(), state(**{DIGEST: "6"})), usual()) == [(DIGEST, "medium")]
    oracles = {alarm.oracle for alarm in judge(run_of(state(), state(**{SEEDED: "z"})).run, usual())}
    assert oracles == {"restarts"}


@pytest.mark.spec("K-136")
def test_pods_that_are_replaced_in_any_case_or_by_a_new_set_are_no_harm() -> None:
    changed = state(**{SEEDED: "z"})
    assert said(run_of(state(), changed), usual(state("two"))) == []
    assert said(run_of(state(), state(uid="2", **{SEEDED: "z"})), usual()) == []
    assert said(run_of({}, changed), usual()) == []
    assert said(run_of(state(), {}), usual()) == []


@pytest.mark.spec("K-136")
def test_what_is_compared_and_runs_without_a_restart_are_judged_by_others() -> None:
    assert said(run_of(state(), state("two")), usual()) == []
    assert said(run_of(state(), state(**{SEEDED: "z"}), "errors"), usual()) == []


@pytest.mark.spec("K-142")
def test_what_the_user_masks_is_no_alarm_and_the_rest_is() -> None:
    image = usual(None, r"apps/.*:spec\.template\..*image")
    assert said(run_of(state(), state("two")), image) == []
    assert said(run_of(state(), state("two", **{SEEDED: "z"})), image) == [(SEEDED, "medium")]
    for masked, other in ((SEEDED, DIGEST), (DIGEST, SEEDED)):
        masks = usual(None, rf"apps/statefulsets:.*{masked}")
        assert said(run_of(state(), state(**{masked: "z"})), masks) == []
        assert said(run_of(state(), state(**{masked: "z", other: "z"})), masks) == [(other, "medium")]
    elsewhere = usual(None, rf"apps/deployments:.*{SEEDED}")
    assert said(run_of(state(), state(**{SEEDED: "z"})), elsewhere) == [(SEEDED, "medium")]
