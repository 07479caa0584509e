"""A workload has as many replicas as the field that it follows says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.check.model import Apply, Plan, Step
from konverge.check.oracles import judge
from konverge.check.oracles.following import following
from konverge.check.reference import Reference
from tests.check.oracles.histories import KEY, THING, History, obj, reference

SETS = "apps/statefulsets default/a"


def step(size: Any, name: str = "", **more: Any) -> Step:
    about = {"about": "spec.size", "core": "Replicas", **more}
    return Step(name or f"spec.size: {size}", (Apply({**THING, "spec": {"size": size}}),), **about)


def state(size: Any, replicas: int | None, **status: Any) -> dict[str, Any]:
    thing = obj("Thing", apiVersion="example.dev/v1", spec={"size": size}, status=status)
    spec = {} if replicas is None else {"replicas": replicas}
    return {KEY: thing, **({SETS: obj("StatefulSet", spec=spec)} if replicas != -1 else {})}


def usual(*replicas: tuple[int, int]) -> Reference:
    history = History((step(1, "create", about="", core=""), *(step(size) for size, _ in replicas)))
    history.rest(state(1, 1))
    for size, present in replicas:
        history.rest(state(size, present))
    return reference(history)


SANE = usual((3, 3), (1, 1))


def run(change: Step, after: dict[str, Any], **more: Any) -> History:
    history = History((step(1, "create", about="", core=""), change), "input")
    history.run.plan = Plan("input", steps=history.run.steps)
    return history.rest(state(1, 1)).rest(after, **more)


def said(history: History, beside: Reference = SANE) -> list[tuple[str, Any, Any]]:
    return [(alarm.severity, alarm.expected, alarm.actual) for alarm in following(history.run, beside)]


@pytest.mark.spec("K-139")
def test_a_number_that_is_not_taken_is_said() -> None:
    assert said(run(step(0), state(0, 0))) == []
    assert said(run(step(0), state(0, 1))) == [("medium", 0, 1)]
    (alarm,) = (alarm for alarm in judge(run(step(0), state(0, 2)).run, SANE) if alarm.oracle == "following")
    assert (alarm.object, alarm.field, alarm.step) == (SETS, "spec.replicas", "spec.size: 0")


@pytest.mark.spec("K-139")
def test_who_does_not_follow_the_field_undisturbed_need_not_now() -> None:
    assert said(run(step(0), state(0, 1)), usual((3, 2), (1, 1))) == [], "another number once"
    assert said(run(step(0), state(0, 1)), usual((1, 1))) == [], "one number says nothing"


@pytest.mark.spec("K-139")
@pytest.mark.parametrize(
    ("change", "after", "more"),
    [
        (step(0), state(0, 1, phase="Failed"), {}),
        (step(0, expect="harmless"), state(0, 1), {}),
        (step(0, core=""), state(0, 1), {}),
        (step(0), state(0, 1), {"rested": False}),
        (step(0), state(0, -1), {}),
        (step(0), state(0, None), {}),
        (step("2"), state("2", 1), {}),
    ],
)
def test_what_says_nothing(change: Step, after: dict[str, Any], more: dict[str, Any]) -> None:
    assert said(run(change, after, **more)) == []
    refused = run(step(0), state(0, 1))
    refused.run.checkpoints[-1].refused = "no"
    assert said(refused) == []


@pytest.mark.spec("K-144")
@pytest.mark.parametrize(
    ("about", "spec"),
    [
        ("spec.nodeSets[0].count", lambda size: {"nodeSets": [{"count": size}, {"count": 7}]}),
        ("spec.nodeSets[1].count", lambda size: {"nodeSets": [{"count": 7}, {"count": size}]}),
        ("spec.pools.0.size", lambda size: {"pools": {"0": {"size": size}}}),
        ("spec.sizes[0]", lambda size: {"sizes": [size]}),
    ],
)
def test_a_number_inside_of_a_list_or_a_map_is_followed_as_well(about: str, spec: Callable[[int], Any]) -> None:
    def resized(size: int, replicas: int) -> dict[str, Any]:
        thing = obj("Thing", apiVersion="example.dev/v1", spec=spec(size))
        return {KEY: thing, SETS: obj("StatefulSet", spec={"replicas": replicas})}

    steps = [step(1, "create", about="", core=""), *(step(size, about=about) for size in (3, 0))]
    sane = reference(History(tuple(steps[:2])).rest(resized(1, 1)).rest(resized(3, 3)))
    for replicas, expected in ((0, []), (1, [("medium", 0, 1)])):
        changed = History((steps[0], steps[2]), "input").rest(resized(1, 1)).rest(resized(0, replicas))
        assert said(changed, sane) == expected
