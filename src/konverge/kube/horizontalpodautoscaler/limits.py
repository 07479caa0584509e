"""The bounds of a change: minimum and maximum, the rate, and what was recommended a while ago.

Upstream: normalizeDesiredReplicas and normalizeDesiredReplicasWithBehaviors (horizontal.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

import msgspec

from konverge.objects.kinds.autoscaling_v2 import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules

DOWNSCALE_WINDOW = 300
"""Seconds for which the highest recommendation holds. Upstream: HorizontalPodAutoscalerDownscaleStabilizationWindow."""
_IN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_DOWN_STABLE = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_STABLE = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_READY = ("ReadyForNewScale", "recommended size matches current size")

Reason = tuple[str, str]
"""Reason and message of a condition."""
Moment = tuple[float, int]
"""When, and how many replicas."""


class History(msgspec.Struct):
    """What an autoscaler recommended and did."""

    recommendations: list[Moment] = msgspec.field(default_factory=list)
    ups: list[Moment] = msgspec.field(default_factory=list)
    downs: list[Moment] = msgspec.field(default_factory=list)

    def recommend(self, now: float, replicas: int, window: float) -> None:
        """Remember it, and forget what is older than any window."""
        self.recommendations = [item for item in self.recommendations if item[0] >= now - window]
        self.recommendations.append((now, replicas))

    def scaled(self, now: float, before: int, after: int, behavior: HorizontalPodAutoscalerBehavior | None) -> None:
        """Upstream: storeScaleEvent."""
        if behavior is None:
            return
        rules = behavior.scale_up if after > before else behavior.scale_down
        longest = max((policy.period_seconds for policy in rules.policies), default=0) if rules is not None else 0
        events = self.ups if after > before else self.downs
        events[:] = [event for event in events if event[0] >= now - longest] + [(now, abs(after - before))]


class Decision(msgspec.Struct, frozen=True):
    """How many replicas, and what the conditions AbleToScale and ScalingLimited say."""

    replicas: int
    able: Reason
    limited: bool
    limit: Reason


class Bounds(msgspec.Struct, frozen=True):
    current: int
    least: int
    most: int


def decide(
    history: History, bounds: Bounds, desired: int, behavior: HorizontalPodAutoscalerBehavior | None, now: float
) -> Decision:
    if behavior is None:
        stable, able = _stabilized(history, desired, now)
        replicas, limit = _within(bounds, stable)
    else:
        up, down = behavior.scale_up or HPAScalingRules(), behavior.scale_down or HPAScalingRules()
        stable, able = _stabilized_by(history, bounds.current, desired, up, down, now)
        replicas, limit = _within_rate(history, bounds, stable, up, down, now)
    return Decision(replicas, able, replicas != stable, limit)


# ------------------------------------------------------------------ without a behavior


def _stabilized(history: History, desired: int, now: float) -> tuple[int, Reason]:  # upstream: stabilizeRecommendation
    recent = [replicas for at, replicas in history.recommendations if at >= now - DOWNSCALE_WINDOW]
    history.recommend(now, desired, DOWNSCALE_WINDOW)
    stable = max([desired, *recent])
    return stable, _READY if stable == desired else _DOWN_STABLE


def _within(bounds: Bounds, desired: int) -> tuple[int, Reason]:  # upstream: convertDesiredReplicasWithRules
    fastest = max(2 * bounds.current, 4)
    most, limit = (fastest, _UP_LIMIT) if bounds.most > fastest else (bounds.most, _TOO_MANY)
    if desired < bounds.least:
        return bounds.least, _TOO_FEW
    return (most, limit) if desired > most else (desired, _IN_RANGE)


# ------------------------------------------------------------------ with a behavior


def _stabilized_by(
    history: History, current: int, desired: int, up: HPAScalingRules, down: HPAScalingRules, now: float
) -> tuple[int, Reason]:  # upstream: stabilizeRecommendationWithBehaviors
    up_window = up.stabilization_window_seconds or 0
    asked = down.stabilization_window_seconds
    down_window = DOWNSCALE_WINDOW if asked is None else asked
    lowest = min([desired, *(replicas for at, replicas in history.recommendations if at > now - up_window)])
    highest = max([desired, *(replicas for at, replicas in history.recommendations if at > now - down_window)])
    history.recommend(now, desired, max(up_window, down_window))
    stable = min(max(current, lowest), highest)
    if stable == desired:
        return stable, _READY
    return stable, _UP_STABLE if desired >= current else _DOWN_STABLE


def _within_rate(
    history: History, bounds: Bounds, desired: int, up: HPAScalingRules, down: HPAScalingRules, now: float
) -> tuple[int, Reason]:  # upstream: convertDesiredReplicasWithBehaviorRate
    if desired > bounds.current:
        fastest = max(_up_limit(history, bounds.current, up, now), bounds.current)
        most, limit = (fastest, _UP_LIMIT) if bounds.most > fastest else (bounds.most, _TOO_MANY)
        return (most, limit) if desired > most else (desired, _IN_RANGE)
    if desired < bounds.current:
        fastest = min(_down_limit(history, bounds.current, down, now), bounds.current)
        least, limit = (fastest, _DOWN_LIMIT) if bounds.least < fastest else (bounds.least, _TOO_FEW)
        return (least, limit) if desired < least else (desired, _IN_RANGE)
    return desired, _IN_RANGE


def _up_limit(history: History, current: int, rules: HPAScalingRules, now: float) -> int:
    """Upstream: calculateScaleUpLimitWithScalingRules."""
    if rules.select_policy == "Disabled" or not rules.policies:
        return current
    proposals = []
    for policy in rules.policies:
        start = _at_start(history, current, policy, now)
        more = policy.value if policy.type == "Pods" else ceil(start * (1 + policy.value / 100)) - start
        proposals.append(start + more)
    return min(proposals) if rules.select_policy == "Min" else max(proposals)


def _down_limit(history: History, current: int, rules: HPAScalingRules, now: float) -> int:
    """Upstream: calculateScaleDownLimitWithBehaviors."""
    if rules.select_policy == "Disabled" or not rules.policies:
        return current
    proposals = []
    for policy in rules.policies:
        start = _at_start(history, current, policy, now)
        proposals.append(start - policy.value if policy.type == "Pods" else int(start * (1 - policy.value / 100)))
    return max(proposals) if rules.select_policy == "Min" else min(proposals)


def _at_start(history: History, current: int, policy: HPAScalingPolicy, now: float) -> int:
    """The replicas when the policy's period began."""
    return (
        current
        - _changed(history.ups, policy.period_seconds, now)
        + _changed(history.downs, policy.period_seconds, now)
    )


def _changed(events: Iterable[Moment], seconds: int, now: float) -> int:  # upstream: getReplicasChangePerPeriod
    return sum(replicas for at, replicas in events if at > now - seconds)
