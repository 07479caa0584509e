"""A status that does not tell the truth."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Step
from konverge.check.oracles.status import status
from tests.check.oracles.histories import KEY, STEPS, THING, History, obj, reference

SET = "apps/statefulsets default/db"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def state(shown: dict[str, Any], ready: int = 3, **metadata: Any) -> dict[str, Any]:
    owner = [{"uid": "uid-Thing-a"}]
    sets = obj("StatefulSet", "db", metadata={"ownerReferences": owner}, spec={"replicas": 3})
    return {KEY: obj("Thing", status=shown, metadata=metadata), SET: {**sets, "status": {"readyReplicas": ready}}}


@pytest.mark.spec("K-35")
def test_a_generation_that_was_not_observed_is_said() -> None:
    sane = reference(History().rest(state({"observedGeneration": 2}, generation=2)))
    assert list(status(sane.run, sane)) == []
    late = History().rest(state({"observedGeneration": 1}, generation=2)).run
    assert [(alarm.field, alarm.expected, alarm.actual) for alarm in status(late, sane)] == [
        ("status.observedGeneration", 2, 1)
    ]


def _condition(**fields: str) -> dict[str, Any]:
    return {"conditions": [{"type": "ReconcileSuccess", **fields}]}


@pytest.mark.spec("K-85")
@pytest.mark.parametrize(
    ("shown", "severity"),
    [
        (_condition(status="False", reason="UnsupportedOperation"), "low"),
        (_condition(type="Stalled", status="True", reason="Waiting"), "low"),
        ({"phase": "Failed"}, "low"),
        ({"state": "error"}, "low"),
        (_condition(type="Degraded", status="False", reason="AsExpected"), "medium"),
        (_condition(status="True", reason="NoErrors"), "medium"),
        (_condition(type="Stalled", status="Unknown", reason="Failed"), "medium"),
        ({"conditions": "none", "phase": "Running"}, "medium"),
        ({}, "medium"),
    ],
)
def test_a_generation_is_not_observed_where_the_change_is_said_to_be_refused(
    shown: dict[str, Any], severity: str
) -> None:
    sane = reference(History().rest(state({"observedGeneration": 2}, generation=2)))
    late = History().rest(state({"observedGeneration": 1, **shown}, generation=2)).run
    assert [alarm.severity for alarm in status(late, sane)] == [severity]


@pytest.mark.spec("K-35")
@pytest.mark.parametrize("shown", [READY, {"phase": "Running"}])
def test_ready_at_rest_while_its_pods_are_not(shown: dict[str, Any]) -> None:
    sane = reference(History().rest(state(shown)))
    assert list(status(sane.run, sane)) == []
    assert [alarm.actual for alarm in status(History().rest(state(shown, ready=1)).run, sane)] == [1]
    honest = History().rest(state({"phase": "Degraded"}, ready=1)).run
    assert list(status(honest, sane)) == []


@pytest.mark.spec("K-35")
@pytest.mark.parametrize(
    ("spec", "annotations", "said"),
    [({"paused": True}, {}, 0), ({}, {"example.dev/pause": "true"}, 0), ({"paused": False, "cause": True}, {}, 2)],
)
def test_what_is_paused_need_not_follow(spec: dict[str, Any], annotations: dict[str, str], said: int) -> None:
    shown = state({"observedGeneration": 1, **READY}, ready=1, generation=2, annotations=annotations)
    shown[KEY]["spec"] = spec
    sane = reference(History().rest(shown))
    assert len(list(status(sane.run, sane))) == said


@pytest.mark.spec("K-35")
def test_ready_before_any_pod_was_is_said() -> None:
    ready = ("status.conditions[Ready].status", "False", "True")
    pods = ("status.readyReplicas", "<absent>", 3)
    early = History().change("ADDED", SET).change("MODIFIED", KEY, ready).change("MODIFIED", SET, pods, by="cluster")
    assert [alarm.field for alarm in status(early.rest(state(READY)).run, reference(History().rest()))] == [
        "status before it is so"
    ]
    right = History().change("ADDED", SET).change("MODIFIED", SET, pods, by="cluster").change("MODIFIED", KEY, ready)
    assert list(status(right.rest(state(READY)).run, reference(History().rest()))) == []


@pytest.mark.spec("K-35")
def test_a_custom_resource_does_not_wait_for_the_pods_of_another() -> None:
    """Two samples are made in one step: the smaller one is ready first."""
    other = "example.dev/things default/b"
    second = Apply({**THING, "metadata": {"name": "b", "namespace": "default"}})
    steps = (Step("create", (*STEPS[0].actions, second)),)
    ready = ("status.conditions[Ready].status", "False", "True")
    both = {**state(READY), other: obj("Thing", "b", status=READY)}
    early = History(steps).change("ADDED", SET).change("MODIFIED", other, ready).rest(both).run
    assert list(status(early, reference(History(steps).rest()))) == []
    lying = History(steps).change("ADDED", SET).change("MODIFIED", KEY, ready).rest(both).run
    assert [alarm.object for alarm in status(lying, reference(History(steps).rest()))] == [KEY]


@pytest.mark.spec("K-35")
def test_what_the_reference_says_as_well_is_said_of_it_alone() -> None:
    lying = reference(History().rest(state(READY, ready=0)))
    assert len(list(status(lying.run, lying))) == 1
    assert list(status(History().rest(state(READY, ready=0)).run, lying)) == []
