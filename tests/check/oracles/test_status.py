"""A status that does not tell the truth."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.oracles.status import status
from tests.check.oracles.histories import KEY, History, obj, reference

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


@pytest.mark.spec("K-35")
@pytest.mark.parametrize("shown", [READY, {"phase": "Running"}])
def test_ready_at_rest_while_its_pods_are_not(shown: dict[str, Any]) -> None:
    sane = reference(History().rest(state(shown)))
    assert list(status(sane.run, sane)) == []
    assert [alarm.actual for alarm in status(History().rest(state(shown, ready=1)).run, sane)] == [1]
    honest = History().rest(state({"phase": "Degraded"}, ready=1)).run
    assert list(status(honest, sane)) == []


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
def test_what_the_reference_says_as_well_is_said_of_it_alone() -> None:
    lying = reference(History().rest(state(READY, ready=0)))
    assert len(list(status(lying.run, lying))) == 1
    assert list(status(History().rest(state(READY, ready=0)).run, lying)) == []
