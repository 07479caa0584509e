"""How many replicas a metric asks for. The cases are upstream's (replica_calculator_test.go), where they have one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.kube.horizontalpodautoscaler.usage import (
    MetricsError,
    PodMetric,
    Proposal,
    Tolerances,
    average,
    pod_metrics,
    propose,
    requests_of,
    utilization,
)
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import format_time

pytestmark = pytest.mark.spec("R-44")

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)


def pod(number: int, *, request: str = "1", phase: str = "Running", ready: bool = True, **times: datetime) -> Pod:
    started, turned = times.get("started", OLD), times.get("turned", OLD)
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": format_time(turned)}
    status = {"phase": phase, "startTime": format_time(started), "conditions": [condition]}
    containers = [{"name": "main", "resources": {"requests": {"cpu": request}}}]
    body: dict[str, Any] = {"metadata": {"name": f"p{number}"}, "spec": {"containers": containers}, "status": status}
    return from_dict(Pod, body)


def proposed(
    pods: list[Pod], uses: list[int], target: int = 50, current: int | None = None, **tolerance: float
) -> Proposal:
    """By utilization of a CPU each; `uses` are those of the first pods."""
    metrics = {f"p{number}": PodMetric(use, NOW, timedelta(seconds=15)) for number, use in enumerate(uses)}
    asked = requests_of(pods, "cpu")
    full = max(100, target)
    return propose(
        len(pods) if current is None else current, metrics, pods, "cpu", Tolerances(**tolerance), NOW,
        utilization(asked, target), lambda name: asked[name] * full // 100,
    )  # fmt: skip


def replicas(pods: list[Pod], uses: list[int], **more: Any) -> int:
    return proposed(pods, uses, **more).replicas


def running(count: int) -> list[Pod]:
    return [pod(number) for number in range(count)]


def test_replicas_grow_and_shrink_by_the_ratio() -> None:
    assert proposed(running(3), [300, 500, 700], target=30) == Proposal(5, 50, 500)
    assert proposed(running(5), [100, 300, 500, 250, 250], target=50) == Proposal(3, 28, 280)


@pytest.mark.parametrize(("use", "expected"), [(440, 9), (450, 10), (500, 10), (550, 10), (560, 12)])
def test_a_ratio_within_the_tolerance_changes_nothing(use: int, expected: int) -> None:
    assert replicas(running(10), [use] * 10, target=50) == expected


def test_tolerances_have_two_sides() -> None:
    assert replicas(running(10), [540] * 10, up=0.05) == 11
    assert replicas(running(10), [540] * 10, up=0.1) == 10
    assert replicas(running(10), [460] * 10, down=0.05) == 10
    assert replicas(running(10), [420] * 10, down=0.05) == 9
    assert replicas(running(10), [420] * 10, down=0.2) == 10


def test_pods_without_metrics_count_as_idle_when_growing() -> None:
    assert replicas(running(4), [800, 800], target=50) == 4
    assert replicas(running(4), [1500, 1500], target=50) == 6


def test_pods_without_metrics_count_as_fully_used_when_shrinking() -> None:
    assert replicas(running(4), [100, 100, 100], target=50) == 3
    assert replicas(running(4), [100, 100], target=50) == 4


def test_pods_without_metrics_never_turn_the_direction() -> None:
    assert replicas(running(4), [400, 400], target=50) == 4


def test_pods_that_are_not_ready_count_as_idle_when_growing_and_not_when_shrinking() -> None:
    fresh = [pod(2, ready=False, started=NOW - timedelta(minutes=1), turned=NOW)]
    assert replicas([*running(2), *fresh], [900, 900, 900], target=50) == 4
    assert replicas([*running(2), *fresh], [100, 100, 900], target=50) == 1


@pytest.mark.parametrize(
    ("times", "ready", "counts"),
    [
        ({"started": NOW - timedelta(minutes=1), "turned": NOW - timedelta(seconds=20)}, True, True),
        ({"started": NOW - timedelta(minutes=1), "turned": NOW - timedelta(seconds=10)}, True, False),
        ({"started": NOW - timedelta(minutes=1), "turned": NOW - timedelta(seconds=20)}, False, False),
        ({"started": NOW - timedelta(minutes=6), "turned": NOW - timedelta(seconds=1)}, True, True),
        ({"started": NOW - timedelta(minutes=6), "turned": NOW - timedelta(seconds=1)}, False, True),
        ({"started": NOW - timedelta(minutes=6), "turned": NOW - timedelta(seconds=350)}, False, False),
    ],
)
def test_the_first_minutes_of_a_pod(times: dict[str, datetime], ready: bool, counts: bool) -> None:
    pods = [pod(0), pod(1, ready=ready, started=times["started"], turned=times["turned"])]
    assert proposed(pods, [500, 100], target=50).average == (300 if counts else 500)


def test_pods_that_end_are_left_out_and_pending_ones_wait() -> None:
    gone = pod(2)
    gone.metadata.deletion_timestamp = "2026-01-01T11:00:00Z"
    assert replicas([*running(2), gone], [1000, 1000, 10], target=50) == 4
    assert replicas([*running(2), pod(2, phase="Failed")], [1000, 1000], target=50) == 4
    assert replicas([*running(2), pod(2, phase="Pending")], [1000, 1000], target=50) == 4
    assert replicas([*running(2), pod(2, phase="Pending")], [600, 600], target=50) == 3


def test_an_average_value_is_a_target_for_each_pod() -> None:
    pods = running(2)
    metrics = {"p0": PodMetric(300, NOW), "p1": PodMetric(500, NOW)}
    made = propose(2, metrics, pods, "memory", Tolerances(), NOW, average(200), lambda _: 200)
    assert made == Proposal(4, 0, 400)


def test_what_cannot_be_computed_is_an_error() -> None:
    with pytest.raises(MetricsError, match=r"did not receive metrics for targeted pods \(pods might be unready\)"):
        proposed([pod(0, phase="Pending")], [100])
    plain = from_dict(Pod, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main"}]}})
    with pytest.raises(MetricsError, match="missing request for cpu in container main of Pod x"):
        requests_of([plain], "cpu")
    with pytest.raises(MetricsError, match="container web not found in Pod p0"):
        requests_of([pod(0)], "cpu", "web")
    with pytest.raises(MetricsError, match="no metrics returned matched known pods"):
        utilization({}, 50)({"stranger": PodMetric(1, NOW)})


def test_requests_are_those_of_all_containers_with_sidecars_or_of_the_pod() -> None:
    spec: dict[str, Any] = {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
            {"name": "once", "resources": {"requests": {"cpu": "5"}}},
        ],
    }
    body = {"metadata": {"name": "x"}, "spec": spec}
    assert requests_of([from_dict(Pod, body)], "cpu") == {"x": 1250}
    assert requests_of([from_dict(Pod, body)], "cpu", "s") == {"x": 250}
    spec["resources"] = {"requests": {"cpu": "3"}}
    assert requests_of([from_dict(Pod, body)], "cpu") == {"x": 3000}
    assert requests_of([from_dict(Pod, body)], "cpu", "a") == {"x": 1000}


def test_metrics_of_a_pod_are_the_sum_of_its_containers_or_of_one() -> None:
    def item(name: str, *uses: dict[str, str]) -> dict[str, Any]:
        containers = [{"name": f"c{number}", "usage": use} for number, use in enumerate(uses)]
        meta = {"name": name}
        return {"metadata": meta, "timestamp": "2026-01-01T12:00:00Z", "window": "15s", "containers": containers}

    items = [item("a", {"cpu": "100m"}, {"cpu": "1"}), item("b", {"cpu": "1"}, {"memory": "1Mi"}), item("c")]
    window = timedelta(seconds=15)
    assert pod_metrics(items, "cpu") == {"a": PodMetric(1100, NOW, window)}
    assert pod_metrics(items, "cpu", "c1") == {"a": PodMetric(1000, NOW, window)}
    assert pod_metrics(items, "cpu", "c0") == {"a": PodMetric(100, NOW, window), "b": PodMetric(1000, NOW, window)}


def test_tolerances_include_their_edges() -> None:
    tolerances = Tolerances(down=0.25, up=0.5)
    assert [tolerances.allow(ratio) for ratio in (0.74, 0.75, 1.0, 1.5, 1.51)] == [False, True, True, True, False]
    assert Tolerances() == Tolerances(down=0.1, up=0.1)


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({"conditions": []}, False),
        ({"startTime": None}, False),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, False),
        ({}, True),
    ],
)
def test_a_pod_without_times_is_starting(status: dict[str, Any], counts: bool) -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(OLD)}
    whole = {"phase": "Running", "startTime": format_time(OLD), "conditions": [condition], **status}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    odd = from_dict(Pod, {"metadata": {"name": "p1"}, "spec": {"containers": containers}, "status": whole})
    assert proposed([pod(0), odd], [500, 100], target=50).average == (300 if counts else 500)
    metrics = {"p0": PodMetric(500, NOW), "p1": PodMetric(100, NOW)}
    memory = propose(2, metrics, [pod(0), odd], "memory", Tolerances(), NOW, average(100), lambda _: 100)
    assert memory.average == 300  # only the CPU of a start is not that of later


@pytest.mark.parametrize(
    ("age", "turned", "ready", "counts"),
    [
        (timedelta(minutes=5), timedelta(minutes=5, seconds=-1), True, True),  # no longer its first minutes
        (timedelta(minutes=5, seconds=-1), timedelta(seconds=15), True, True),
        (timedelta(minutes=5, seconds=-1), timedelta(seconds=14), True, False),
        (timedelta(minutes=6), timedelta(minutes=5, seconds=30), False, True),
        (timedelta(minutes=6), timedelta(minutes=5, seconds=31), False, False),
    ],
)
def test_the_edges_of_the_first_minutes(age: timedelta, turned: timedelta, ready: bool, counts: bool) -> None:
    pods = [pod(0), pod(1, ready=ready, started=NOW - age, turned=NOW - turned)]
    assert proposed(pods, [500, 100], target=50).average == (300 if counts else 500)


def test_a_change_that_the_damping_turns_or_overshoots_is_none() -> None:
    """Two pods have metrics, two have none."""
    assert replicas(running(4), [500, 500], target=50, current=4) == 4  # exactly at the target
    assert replicas(running(4), [460, 460], target=50) == 4
    assert replicas(running(5), [1200, 1200, 1200, 1200], target=50, current=5) == 10
    assert replicas(running(4), [10, 10, 10], target=50, current=2) == 2  # more than there are
    assert replicas(running(4), [900, 900, 900], target=50, current=9) == 9  # fewer than there are
    waiting = [*running(2), pod(2, phase="Pending")]
    assert replicas(waiting, [500, 500], target=50, current=3) == 3
    assert replicas(waiting, [100, 100], target=50, current=3) == 1


def test_requests_of_a_whole_pod_are_asked_by_name() -> None:
    body = {"metadata": {"name": "x"}, "spec": {"containers": [], "resources": {"requests": {"memory": "1Mi"}}}}
    with pytest.raises(MetricsError, match="missing pod-level request for cpu in Pod x"):
        requests_of([from_dict(Pod, body)], "cpu")
    with pytest.raises(MetricsError, match="container web not found"):
        requests_of([from_dict(Pod, body)], "cpu", "web")


def test_metrics_without_a_window_or_of_an_absent_container() -> None:
    item = {"metadata": {"name": "a"}, "timestamp": "2026-01-01T12:00:00Z", "containers": [{"name": "c"}]}
    assert pod_metrics([item], "cpu") == {}
    used = {**item, "containers": [{"name": "c", "usage": {"cpu": "2"}}]}
    assert pod_metrics([used], "cpu") == {"a": PodMetric(2000, NOW, timedelta())}
    assert pod_metrics([used], "cpu", "other") == {}
    assert pod_metrics([{**item, "containers": None}], "cpu") == {}
    assert utilization({"a": 1000}, 50)({"a": PodMetric(1999, NOW), "b": PodMetric(1, NOW)}) == (3.98, 199, 1999)
