"""Bounds, rates and stabilisation. Upstream: horizontal_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube.horizontalpodautoscaler.limits import Bounds, Decision, History, decide
from konverge.objects.codec import from_dict
from konverge.objects.kinds.autoscaling_v2 import HorizontalPodAutoscalerBehavior

pytestmark = pytest.mark.spec("R-44")


def behavior(up: dict[str, Any] | None = None, down: dict[str, Any] | None = None) -> HorizontalPodAutoscalerBehavior:
    """With the API server's defaults."""
    every = {"type": "Percent", "value": 100, "periodSeconds": 15}
    more = {"type": "Pods", "value": 4, "periodSeconds": 15}
    rules_up = {"policies": [more, every], "selectPolicy": "Max", "stabilizationWindowSeconds": 0, **(up or {})}
    rules_down = {"policies": [every], "selectPolicy": "Max", **(down or {})}
    return from_dict(HorizontalPodAutoscalerBehavior, {"scaleUp": rules_up, "scaleDown": rules_down})


def decided(current: int, desired: int, *, least: int = 1, most: int = 100, **more: Any) -> Decision:
    history = more.pop("history", None) or History()
    return decide(history, Bounds(current, least, most), desired, more.get("by"), more.get("now", 0.0))


@pytest.mark.parametrize(
    ("current", "desired", "least", "most", "replicas", "reason"),
    [
        (2, 3, 1, 10, 3, "DesiredWithinRange"),
        (2, 9, 1, 10, 4, "ScaleUpLimit"),
        (1, 9, 1, 10, 4, "ScaleUpLimit"),
        (4, 9, 1, 7, 7, "TooManyReplicas"),
        (6, 12, 1, 12, 12, "DesiredWithinRange"),
        (6, 13, 1, 20, 12, "ScaleUpLimit"),
        (6, 1, 2, 20, 2, "TooFewReplicas"),
    ],
)
def test_without_a_behavior(current: int, desired: int, least: int, most: int, replicas: int, reason: str) -> None:
    made = decided(current, desired, least=least, most=most)
    assert (made.replicas, made.limit[0], made.limited) == (replicas, reason, replicas != desired)
    assert made.able[0] == "ReadyForNewScale"


def test_the_highest_recommendation_of_five_minutes_holds() -> None:
    history = History()
    assert decided(5, 5, history=history, now=0).replicas == 5
    held = decided(5, 2, history=history, now=299)
    assert (held.replicas, held.able[0], held.limited) == (5, "ScaleDownStabilized", False)
    assert decided(5, 2, history=history, now=301).replicas == 2


def test_a_behavior_has_its_own_windows() -> None:
    by, history = behavior(up={"stabilizationWindowSeconds": 60}, down={"stabilizationWindowSeconds": 10}), History()
    assert decided(5, 5, by=by, history=history, now=0).replicas == 5
    held = decided(5, 8, by=by, history=history, now=30)
    assert (held.replicas, held.able[0]) == (5, "ScaleUpStabilized")
    assert decided(5, 8, by=by, history=history, now=61).replicas == 8
    history = History()
    decided(5, 5, by=by, history=history, now=0)
    held = decided(5, 1, by=by, history=history, now=9)
    assert (held.replicas, held.able[0]) == (5, "ScaleDownStabilized")
    assert decided(5, 1, by=by, history=history, now=20).replicas == 1


def test_shrinking_is_stabilised_for_five_minutes_by_default() -> None:
    by, history = behavior(), History()
    decided(5, 5, by=by, history=history, now=0)
    assert decided(5, 1, by=by, history=history, now=299).replicas == 5
    assert decided(5, 1, by=by, history=history, now=301).replicas == 1


@pytest.mark.parametrize(("select", "replicas"), [("Max", 15), ("Min", 12), ("Disabled", 10)])
def test_policies_limit_the_growth(select: str, replicas: int) -> None:
    policies = [
        {"type": "Pods", "value": 2, "periodSeconds": 60},
        {"type": "Percent", "value": 50, "periodSeconds": 60},
    ]
    made = decided(10, 50, by=behavior(up={"policies": policies, "selectPolicy": select}))
    assert (made.replicas, made.limit[0]) == (replicas, "ScaleUpLimit")


@pytest.mark.parametrize(("select", "replicas"), [("Max", 5), ("Min", 8), ("Disabled", 10)])
def test_policies_limit_the_shrinking(select: str, replicas: int) -> None:
    policies = [
        {"type": "Pods", "value": 2, "periodSeconds": 60},
        {"type": "Percent", "value": 50, "periodSeconds": 60},
    ]
    made = decided(10, 1, by=behavior(down={"policies": policies, "selectPolicy": select}))
    assert (made.replicas, made.limit[0]) == (replicas, "ScaleDownLimit")


def test_a_percentage_is_rounded_so_that_it_moves() -> None:
    by = behavior(up={"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]})
    assert decided(1, 50, by=by).replicas == 2
    by = behavior(down={"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]})
    assert decided(1, 0, by=by, least=0).replicas == 0


def test_what_was_added_in_the_period_counts_against_it() -> None:
    by, history = behavior(up={"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}]}), History()
    assert decided(5, 50, by=by, history=history, now=0).replicas == 8
    history.scaled(0, 5, 8, by)
    assert decided(8, 50, by=by, history=history, now=30).replicas == 8
    assert decided(8, 50, by=by, history=history, now=61).replicas == 11


def test_what_was_removed_in_the_period_counts_against_it() -> None:
    down = {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}], "stabilizationWindowSeconds": 0}
    by, history = behavior(down=down), History()
    assert decided(20, 1, by=by, history=history, now=0).replicas == 17
    history.scaled(0, 20, 17, by)
    assert decided(17, 1, by=by, history=history, now=30).replicas == 17
    assert decided(17, 1, by=by, history=history, now=61).replicas == 14


def test_the_maximum_and_the_minimum_bind_with_a_behavior_too() -> None:
    by = behavior()
    assert (decided(5, 9, most=7, by=by).replicas, decided(5, 9, most=7, by=by).limit[0]) == (7, "TooManyReplicas")
    assert (decided(5, 1, least=3, by=by).replicas, decided(5, 1, least=3, by=by).limit[0]) == (3, "TooFewReplicas")


def test_memory_is_bounded_by_the_windows() -> None:
    history, by = History(), behavior()
    for moment in range(0, 6000, 15):
        decided(5, 5 + moment % 2, by=by, history=history, now=float(moment))
        history.scaled(float(moment), 5, 6, by)
    assert len(history.recommendations) <= 22
    assert len(history.ups) <= 2


def test_windows_end_at_their_edges() -> None:
    history = History([(0.0, 9)])
    assert decided(9, 2, history=history, now=300).replicas == 9
    history = History([(0.0, 9)])
    assert decided(9, 2, history=history, now=300.1).replicas == 2
    by = behavior(up={"stabilizationWindowSeconds": 60}, down={"stabilizationWindowSeconds": 30})
    assert decided(5, 8, by=by, history=History([(0.0, 5)]), now=59.9).replicas == 5
    assert decided(5, 8, by=by, history=History([(0.0, 5)]), now=60).replicas == 8
    assert decided(5, 2, by=by, history=History([(0.0, 5)]), now=29.9).replicas == 5
    assert decided(5, 2, by=by, history=History([(0.0, 5)]), now=30).replicas == 2
    within = decided(5, 8, by=by, history=History([(0.0, 6)]), now=10)
    assert (within.replicas, within.able[0]) == (6, "ScaleUpStabilized")
    level = decided(5, 5, by=by, history=History([(0.0, 2), (0.0, 9)]), now=10)
    assert (level.replicas, level.able[0]) == (5, "ReadyForNewScale")


def test_what_is_remembered_is_what_a_window_may_ask_for() -> None:
    history = History([(0.0, 1), (1.0, 2), (2.0, 3)])
    history.recommend(11.0, 4, 10)
    assert history.recommendations == [(1.0, 2), (2.0, 3), (11.0, 4)]
    by = behavior(
        up={
            "policies": [
                {"type": "Pods", "value": 1, "periodSeconds": 5},
                {"type": "Pods", "value": 1, "periodSeconds": 10},
            ]
        }
    )
    history = History(ups=[(0.0, 1), (1.0, 1)], downs=[(0.0, 1)])
    history.scaled(11.0, 3, 5, by)
    assert (history.ups, history.downs) == ([(1.0, 1), (11.0, 2)], [(0.0, 1)])
    history.scaled(11.0, 5, 2, by)
    assert history.downs == [(0.0, 1), (11.0, 3)]
    history.scaled(30.0, 5, 2, by)
    assert history.downs == [(30.0, 3)]
    history.scaled(40.0, 2, 9, None)
    assert history.ups == [(1.0, 1), (11.0, 2)]
    bare = from_dict(HorizontalPodAutoscalerBehavior, {})
    history.scaled(40.0, 2, 9, bare)
    assert history.ups == [(40.0, 7)]


def test_the_period_of_a_policy_ends_at_its_edge() -> None:
    up = {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}]}
    assert decided(8, 50, by=behavior(up=up), history=History(ups=[(0.0, 3)]), now=59.9).replicas == 8
    assert decided(8, 50, by=behavior(up=up), history=History(ups=[(0.0, 3)]), now=60).replicas == 11
    assert decided(8, 50, by=behavior(up=up), history=History(downs=[(0.0, 2)]), now=30).replicas == 13
    percent = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}
    assert decided(9, 50, by=behavior(up=percent), history=History(ups=[(0.0, 3)]), now=30).replicas == 9
    assert decided(5, 50, by=behavior(up=percent)).replicas == 8
    down = {**percent, "stabilizationWindowSeconds": 0}
    assert decided(5, 1, by=behavior(down=down)).replicas == 2
    assert decided(5, 1, by=behavior(down=down), history=History(ups=[(0.0, 1)]), now=30).replicas == 2
    assert decided(3, 1, by=behavior(down=down), history=History(downs=[(0.0, 9)]), now=30).replicas == 3


def test_without_policies_or_rules_nothing_moves() -> None:
    empty: dict[str, Any] = {"policies": []}
    assert decided(5, 9, by=behavior(up=empty)).replicas == 5
    assert decided(5, 1, by=behavior(down=empty)).replicas == 5
    bare = from_dict(HorizontalPodAutoscalerBehavior, {})
    assert (decided(5, 9, by=bare).replicas, decided(5, 1, by=bare).replicas, decided(5, 5, by=bare).replicas) == (
        5,
        5,
        5,
    )
    level = decided(5, 5, by=behavior())
    assert (level.replicas, level.limited, level.limit[0]) == (5, False, "DesiredWithinRange")


@pytest.mark.parametrize(
    ("current", "desired", "least", "most", "replicas", "reason"),
    [
        (5, 7, 1, 7, 7, "DesiredWithinRange"),
        (5, 8, 1, 7, 7, "TooManyReplicas"),
        (5, 50, 1, 10, 10, "TooManyReplicas"),
        (5, 50, 1, 11, 10, "ScaleUpLimit"),
        (5, 3, 3, 9, 3, "DesiredWithinRange"),
        (5, 2, 3, 9, 3, "TooFewReplicas"),
        (5, 0, 0, 9, 0, "DesiredWithinRange"),
    ],
)
def test_the_bounds_with_a_behavior(
    current: int, desired: int, least: int, most: int, replicas: int, reason: str
) -> None:
    down = {"stabilizationWindowSeconds": 0}
    made = decided(current, desired, least=least, most=most, by=behavior(down=down))
    assert (made.replicas, made.limit[0], made.limited) == (replicas, reason, replicas != desired)
