"""The status of a Deployment: its numbers, and what they say about availability and progress."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.deployment import status as statuses
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetCondition,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from konverge.objects.times import now
from konverge.runtime import find_condition
from tests.kube.objects import deployment

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-32")]

EARLIER = "2025-12-31T23:00:00Z"
START = "2026-01-01T00:00:00Z"


def web(wanted: int = 4, *, seconds: int | None = 600, unavailable: int = 1) -> Deployment:
    fields = RollingUpdateDeployment(max_surge=1, max_unavailable=unavailable)
    made = deployment(wanted, strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=fields))
    made.spec.progress_deadline_seconds = seconds
    made.metadata.generation = 7
    return made


def sized(name: str, replicas: int, *, made: int, ready: int, available: int, going: int = 0) -> ReplicaSet:
    status = ReplicaSetStatus(replicas=made, ready_replicas=ready, available_replicas=available)
    status.terminating_replicas = going
    spec = ReplicaSetSpec(replicas=replicas, selector=LabelSelector())
    return ReplicaSet(metadata=ObjectMeta(name=name), spec=spec, status=status)


def condition(kind: str, status: str, reason: str, since: str = EARLIER) -> DeploymentCondition:
    return DeploymentCondition(
        type=kind, status=status, reason=reason, message="", last_update_time=since, last_transition_time=since
    )


def test_the_numbers_are_sums_over_all_sets() -> None:
    obj = web()
    obj.status.collision_count = 3
    new = sized("new", 3, made=2, ready=2, available=1, going=1)
    old = sized("old", 2, made=3, ready=1, available=1, going=2)
    status = statuses.counts(obj, new, [old, new])
    assert (status.observed_generation, status.collision_count) == (7, 3)
    assert (status.replicas, status.updated_replicas, status.ready_replicas) == (5, 2, 3)
    assert (status.available_replicas, status.unavailable_replicas, status.terminating_replicas) == (2, 3, 3)
    none = statuses.counts(obj, None, [])
    assert (none.replicas, none.updated_replicas, none.ready_replicas) == (None, None, None)
    assert (none.available_replicas, none.unavailable_replicas, none.terminating_replicas) == (None, None, 0)
    shrinking = statuses.counts(obj, new, [sized("new", 1, made=4, ready=4, available=4)])
    assert shrinking.unavailable_replicas is None


@pytest.mark.parametrize(
    ("wanted", "available", "expected"),
    [(4, 3, "MinimumReplicasAvailable"), (4, 2, "MinimumReplicasUnavailable"), (0, 0, "MinimumReplicasAvailable")],
)
def test_availability_is_the_desired_number_less_what_may_be_missing(
    wanted: int, available: int, expected: str
) -> None:
    new = sized("new", 4, made=4, ready=4, available=available)
    (found,) = statuses.counts(web(wanted), new, [new]).conditions
    assert (found.type, found.reason) == ("Available", expected)
    assert found.status == str(expected == "MinimumReplicasAvailable")


async def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    conditions = [condition("Available", "True", "a"), condition("Progressing", "True", "a")]
    put = statuses.put
    assert put(conditions, "Available", "True", "a", "other words") == conditions
    renewed = put(conditions, "Available", "True", "a", "m", fresh=True)
    assert [c.type for c in renewed] == ["Progressing", "Available"]
    assert (renewed[1].last_update_time, renewed[1].last_transition_time) == (START, EARLIER)
    reason = put(conditions, "Available", "True", "b", "m")[1]
    assert (reason.reason, reason.message) == ("b", "m")
    assert (reason.last_update_time, reason.last_transition_time) == (START, EARLIER)
    turned = put(conditions, "Available", "False", "a", "m")[1]
    assert (turned.status, turned.last_update_time, turned.last_transition_time) == ("False", START, START)
    (first,) = put([], "Available", "True", "a", "m")
    assert (first.last_update_time, first.last_transition_time) == (START, START)


def full(**numbers: int | None) -> DeploymentStatus:
    fields: dict[str, Any] = {"replicas": 4, "updated_replicas": 4, "available_replicas": 4, "ready_replicas": 4}
    return DeploymentStatus(observed_generation=7, **{**fields, **numbers})


@pytest.mark.parametrize(
    ("numbers", "complete"),
    [
        ({}, True),
        ({"replicas": 5}, False),
        ({"updated_replicas": 3}, False),
        ({"available_replicas": 3}, False),
        ({"ready_replicas": 3}, True),
    ],
)
def test_a_rollout_is_complete_when_all_pods_are_new_and_available(numbers: dict[str, int], complete: bool) -> None:
    status = full(**numbers)
    assert statuses.is_complete(web(), status) is complete
    status.observed_generation = 6
    assert not statuses.is_complete(web(), status)
    assert statuses.is_complete(web(0), DeploymentStatus(observed_generation=8))
    assert not statuses.is_complete(web(0), DeploymentStatus())


SETTLED = ("True", "NewReplicaSetAvailable")
FIVE = {"replicas": 5, "updated_replicas": 2, "ready_replicas": 3, "available_replicas": 3}


@pytest.mark.parametrize(
    ("before", "after", "current", "expected"),
    [
        (FIVE, full(), ("True", "ReplicaSetUpdated"), ("True", "NewReplicaSetAvailable")),
        (FIVE, full(), None, ("True", "NewReplicaSetAvailable")),
        (FIVE, full(), ("False", "ProgressDeadlineExceeded"), ("True", "NewReplicaSetAvailable")),
        (FIVE, {**FIVE, "updated_replicas": 3}, None, ("True", "ReplicaSetUpdated")),
        (FIVE, {**FIVE, "replicas": 4}, None, ("True", "ReplicaSetUpdated")),
        (FIVE, {**FIVE, "ready_replicas": 4}, None, ("True", "ReplicaSetUpdated")),
        (FIVE, {**FIVE, "available_replicas": 4}, None, ("True", "ReplicaSetUpdated")),
        (FIVE, {**FIVE, "available_replicas": 4}, ("True", "NewReplicaSetCreated"), ("True", "ReplicaSetUpdated")),
        (FIVE, {**FIVE, "replicas": 6}, None, None),
        (FIVE, FIVE, None, None),
        (FIVE, FIVE, ("True", "ReplicaSetUpdated"), ("False", "ProgressDeadlineExceeded")),
        (FIVE, FIVE, ("False", "ProgressDeadlineExceeded"), ("False", "ProgressDeadlineExceeded")),
        (FIVE, FIVE, ("True", "NewReplicaSetAvailable"), ("True", "NewReplicaSetAvailable")),
        # Settled: pods that come and go afterwards are no rollout.
        (full(available_replicas=1), full(available_replicas=3), SETTLED, SETTLED),
        (full(available_replicas=1), full(available_replicas=3), ("True", "x"), ("True", "ReplicaSetUpdated")),
        ({}, {**FIVE, "replicas": 2}, ("True", "NewReplicaSetAvailable"), ("True", "NewReplicaSetAvailable")),
        ({}, {**FIVE, "replicas": 3}, ("True", "NewReplicaSetAvailable"), ("True", "ReplicaSetUpdated")),
    ],
)
async def test_progress(before: Any, after: Any, current: Any, expected: Any) -> None:
    def made(numbers: Any) -> DeploymentStatus:
        return DeploymentStatus(observed_generation=7, **numbers) if isinstance(numbers, dict) else numbers

    obj, status = web(), made(after)
    obj.status = made(before)
    status.conditions = [condition("Progressing", *current)] if current else []
    statuses.progress(obj, status, sized("new", 4, made=4, ready=4, available=4), [])
    found = find_condition(status.conditions, "Progressing")
    assert ((found.status, found.reason) if found else None) == expected
    if found and expected == ("True", "ReplicaSetUpdated"):
        assert found.last_update_time == START
    for none in (None, 2**31 - 1):  # no deadline: no condition either
        obj.spec.progress_deadline_seconds = none
        status.conditions = []
        statuses.progress(obj, status, None, [])
        assert status.conditions == []


async def test_the_deadline_runs_from_the_last_progress() -> None:
    obj = web(seconds=600)
    current = condition("Progressing", "True", "ReplicaSetUpdated", now())
    assert statuses.left(obj, current) == 600
    await asyncio.sleep(590)
    assert statuses.left(obj, current) == 10
    status = DeploymentStatus(observed_generation=7, conditions=[current], **FIVE)
    obj.status = DeploymentStatus(observed_generation=7, **FIVE)
    statuses.progress(obj, status, None, [])
    assert status.conditions == [current]
    await asyncio.sleep(9.5)
    statuses.progress(obj, status, None, [])
    assert status.conditions == [current]
    await asyncio.sleep(0.5)
    statuses.progress(obj, status, None, [])
    assert [c.reason for c in status.conditions] == ["ProgressDeadlineExceeded"]
    assert statuses.left(obj, status.conditions[0]) is None
    assert statuses.left(obj, condition("Progressing", "True", "NewReplicaSetAvailable")) is None
    assert statuses.left(obj, None) is None
    undated = condition("Progressing", "True", "ReplicaSetUpdated")
    undated.last_update_time = None
    assert statuses.left(obj, undated) is None, "nobody knows since when"
    obj.spec.progress_deadline_seconds = 2**31 - 1
    assert statuses.left(obj, current) is None


def test_a_refused_pod_is_reported_of_the_new_set_or_else_of_any() -> None:
    def failing(name: str) -> ReplicaSet:
        made = sized(name, 1, made=0, ready=0, available=0)
        other = ReplicaSetCondition(type="Other", status="True", reason="other")
        made.status.conditions = [
            other,
            ReplicaSetCondition(type="ReplicaFailure", status="True", reason=name, message="m"),
        ]
        return made

    def reported(new: ReplicaSet | None, *replicasets: ReplicaSet) -> str | None:
        status = full()
        status.conditions = [condition("ReplicaFailure", "True", "before"), condition("Available", "True", "kept")]
        statuses.progress(web(seconds=None), status, new, list(replicasets))
        assert find_condition(status.conditions, "Available")
        found = find_condition(status.conditions, "ReplicaFailure")
        assert not found or (found.status, found.message) == ("True", "m")
        return found.reason if found else None

    fine, new, old = sized("fine", 1, made=1, ready=1, available=1), failing("new"), failing("old")
    assert reported(new, old, new) == "new"
    assert reported(fine, old, fine) == "old"
    assert reported(None, fine, old) == "old"
    assert reported(fine, fine) is None
    assert reported(None) is None
