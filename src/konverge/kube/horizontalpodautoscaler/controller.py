"""The controller: every 15 seconds it reads the scale of the target and what its pods use, and writes the scale.

Upstream: horizontal.go (reconcileAutoscaler, computeReplicasForMetrics).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import msgspec

from konverge import clock
from konverge.cache import Change
from konverge.client import ClientError, Conflict, MergePatch, UnknownKind, merge_between
from konverge.kube.horizontalpodautoscaler.limits import Bounds, History, decide
from konverge.kube.horizontalpodautoscaler.metrics import MetricFailed, error_text, propose_replicas
from konverge.objects import labels
from konverge.objects.kinds.autoscaling_v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus,
    MetricStatus,
)
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.resource import Resource
from konverge.objects.times import now as time_now
from konverge.runtime import Context, Controller, Request, Result, Use
from konverge.runtime.predicates import ChangePredicate, generation_changed

PERIOD = 15.0
"""Upstream: HorizontalPodAutoscalerSyncPeriod."""
_CONFLICTS = 5


class _Stopped(Exception):
    """This reconcile ends; conditions and events say why."""


class _Scale(msgspec.Struct):
    """The scale of a target, as the server has it."""

    resource: Resource
    obj: dict[str, Any]

    @property
    def replicas(self) -> int:
        return int((self.obj.get("spec") or {}).get("replicas") or 0)

    @property
    def selector(self) -> str:
        return str((self.obj.get("status") or {}).get("selector") or "")


class _Outcome(msgspec.Struct):
    """What the metrics lead to."""

    replicas: int = 0
    metric: str = ""
    statuses: list[MetricStatus] = msgspec.field(default_factory=list)


class Autoscaler:
    """Keeps, in memory as upstream, what it recommended and did for each autoscaler."""

    def __init__(self) -> None:
        self._histories: dict[str, History] = {}
        self._selectors: dict[Request, labels.Selector] = {}

    def concerns(self, change: Change) -> bool:
        """Changes of the spec; the status is our own. What was remembered goes with the object."""
        if change.new is None and change.old is not None:
            self._histories.pop(change.old.uid, None)
            self._selectors.pop(Request(change.old.meta.namespace, change.old.meta.name), None)
        return change.new is not None and generation_changed(change)

    async def reconcile(self, ctx: Context[HorizontalPodAutoscaler]) -> Result | None:
        if ctx.deleting:
            return None
        before = await ctx.get(HorizontalPodAutoscaler, ctx.request.name)
        with suppress(_Stopped):
            await self._scale(ctx)
        if before is not None and before.status != ctx.obj.status:
            patch = merge_between({"status": before.status}, {"status": ctx.obj.status})
            guard = {"metadata": {"resourceVersion": before.metadata.resource_version}}
            await ctx.client.patch(
                HorizontalPodAutoscaler, ctx.request.name, MergePatch({**patch.body, **guard}), ctx.request.namespace,
                subresource="status",
            )  # fmt: skip
        return Result(requeue_after=PERIOD)

    async def _scale(self, ctx: Context[HorizontalPodAutoscaler]) -> None:
        hpa = ctx.obj
        scale = await _read_scale(ctx)
        current, least, most = scale.replicas, hpa.spec.min_replicas, hpa.spec.max_replicas
        least = 1 if least is None else least
        history = self._histories.setdefault(hpa.metadata.uid, History([(clock.now(), current)]))
        outcome = _Outcome()
        if current == 0:
            set_condition(
                hpa, "ScalingActive", False, "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )  # fmt: skip
            desired, why = 0, ""
        elif current > most:
            desired, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            outcome = await self._compute(ctx, scale)
            above, below = outcome.replicas > current, outcome.replicas < current
            why = f"{outcome.metric} above target" if above else "All metrics below target" if below else ""
            bounds = Bounds(current, least, most)
            decision = decide(history, bounds, outcome.replicas, hpa.spec.behavior, clock.now())
            set_condition(hpa, "AbleToScale", True, *decision.able)
            set_condition(hpa, "ScalingLimited", decision.limited, *decision.limit)
            desired = decision.replicas
        if desired != current:
            await self._rescale(ctx, scale, desired, why, outcome)
            history.scaled(clock.now(), current, desired, hpa.spec.behavior)
        _set_status(hpa, current, desired, outcome.statuses, rescaled=desired != current)

    async def _rescale(
        self, ctx: Context[HorizontalPodAutoscaler], scale: _Scale, desired: int, why: str, outcome: _Outcome
    ) -> None:
        current = scale.replicas
        try:
            await _write_scale(ctx, scale, desired)
        except ClientError as error:
            message = error_text(error)
            ctx.warning("FailedRescale", f"New size: {desired}; reason: {why}; error: {message}")
            set_condition(
                ctx.obj, "AbleToScale", False, "FailedUpdateScale",
                f"the HPA controller was unable to update the target scale: {message}",
            )  # fmt: skip
            _set_status(ctx.obj, current, ctx.obj.status.desired_replicas, outcome.statuses)
            raise _Stopped from error
        set_condition(
            ctx.obj, "AbleToScale", True, "SucceededRescale",
            f"the HPA controller was able to update the target scale to {desired}",
        )  # fmt: skip
        ctx.event("SuccessfulRescale", f"New size: {desired}; reason: {why}")

    # -------------------------------------------------------------- metrics

    async def _compute(self, ctx: Context[HorizontalPodAutoscaler], scale: _Scale) -> _Outcome:
        """The highest proposal of all metrics. Upstream: computeReplicasForMetrics."""
        hpa, current, outcome = ctx.obj, scale.replicas, _Outcome()
        selector = await self._selector(ctx, scale)
        pods = await ctx.list(Pod, selector=selector)
        failures: list[tuple[str, str, str]] = []
        proposals: list[tuple[int, str]] = []
        for spec in hpa.spec.metrics:
            try:
                proposal, metric, status = await propose_replicas(ctx, spec, current, selector, pods)
            except MetricFailed as error:
                ctx.warning(error.reason, error.message)
                failures.append((error.reason, error.message, error.prefix))
                continue
            outcome.statuses.append(status)
            proposals.append((proposal.replicas, metric))
        outcome.replicas, outcome.metric = max(proposals, key=itemgetter(0), default=(0, ""))
        if failures and (len(failures) >= len(hpa.spec.metrics) or outcome.replicas < current):
            self._fail(ctx, current, outcome, failures)
        message = f"the HPA was able to successfully calculate a replica count from {outcome.metric}"
        set_condition(hpa, "ScalingActive", True, "ValidMetricFound", message)
        return outcome

    def _fail(
        self,
        ctx: Context[HorizontalPodAutoscaler],
        current: int,
        outcome: _Outcome,
        failures: Sequence[tuple[str, str, str]],
    ) -> None:
        reason, message, prefix = failures[0]
        set_condition(
            ctx.obj, "ScalingActive", False, reason, f"the HPA was unable to compute the replica count: {message}"
        )
        _set_status(ctx.obj, current, ctx.obj.status.desired_replicas, outcome.statuses)
        counted = f"{len(failures)} invalid out of {len(ctx.obj.spec.metrics)}"
        ctx.warning("FailedComputeMetricsReplicas", f"invalid metrics ({counted}), first error is: {prefix}: {message}")
        raise _Stopped

    async def _selector(self, ctx: Context[HorizontalPodAutoscaler], scale: _Scale) -> labels.Selector:
        """Upstream: validateAndParseSelector."""
        hpa = ctx.obj
        if not scale.selector:
            ctx.warning("SelectorRequired", "selector is required")
            missing = "the HPA target's scale is missing a selector"
            set_condition(hpa, "ScalingActive", False, "InvalidSelector", missing)
            raise _Stopped
        selector = self._selectors[ctx.request] = labels.parse(scale.selector)
        pods = await ctx.list(Pod, selector=selector)
        rivals = sorted(
            request.name
            for request, other in self._selectors.items()
            if request.namespace == ctx.request.namespace and any(other.matches(pod.metadata.labels) for pod in pods)
        )
        if len(rivals) > 1:
            keys = " ".join(f"{{{name} {ctx.request.namespace}}}" for name in rivals[:2])
            message = f"pods by selector {scale.selector} are controlled by more than one HPA (e.g. [{keys}])"
            ctx.warning("AmbiguousSelector", message)
            set_condition(hpa, "ScalingActive", False, "AmbiguousSelector", message)
            raise _Stopped
        return selector


# ------------------------------------------------------------------ the target


async def _read_scale(ctx: Context[HorizontalPodAutoscaler]) -> _Scale:
    target = ctx.obj.spec.scale_target_ref
    try:
        resource = await ctx.client.mapper.kind(target.api_version or "v1", target.kind)
        obj = await ctx.client.get_sub(resource, target.name, "scale", ctx.request.namespace)
    except ClientError as error:
        message = error_text(error)
        if isinstance(error, UnknownKind):
            group = (target.api_version or "").rpartition("/")[0]
            message = f'no matches for kind "{target.kind}" in group "{group}"'
        ctx.warning("FailedGetScale", message)
        set_condition(
            ctx.obj, "AbleToScale", False, "FailedGetScale",
            f"the HPA controller was unable to get the target's current scale: {message}",
        )  # fmt: skip
        raise _Stopped from error
    set_condition(
        ctx.obj, "AbleToScale", True, "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )  # fmt: skip
    return _Scale(resource, obj)


async def _write_scale(ctx: Context[HorizontalPodAutoscaler], scale: _Scale, desired: int) -> None:
    """Guarded by the version that was read; a conflict is tried again on the newest one."""
    name, namespace, obj = ctx.obj.spec.scale_target_ref.name, ctx.request.namespace, scale.obj
    for attempt in range(_CONFLICTS):
        body = {**obj, "spec": {**(obj.get("spec") or {}), "replicas": desired}}
        try:
            await ctx.client.update_sub(scale.resource, name, "scale", body, namespace)
        except Conflict:
            if attempt == _CONFLICTS - 1:
                raise
            obj = await ctx.client.get_sub(scale.resource, name, "scale", namespace)
        else:
            return


# ------------------------------------------------------------------ status


def set_condition(hpa: HorizontalPodAutoscaler, kind: str, holds: bool, reason: str, message: str) -> None:
    """Upstream: setConditionInList."""
    conditions, status = hpa.status.conditions, "True" if holds else "False"
    condition = next((item for item in conditions if item.type == kind), None)
    if condition is None:
        condition = HorizontalPodAutoscalerCondition(type=kind, status="")
        conditions.append(condition)
    if condition.status != status:
        condition.last_transition_time = time_now()
    condition.status, condition.reason, condition.message = status, reason, message


def _set_status(
    hpa: HorizontalPodAutoscaler, current: int, desired: int, metrics: list[MetricStatus], *, rescaled: bool = False
) -> None:
    hpa.status = HorizontalPodAutoscalerStatus(
        conditions=hpa.status.conditions,
        current_metrics=metrics,
        current_replicas=current,
        desired_replicas=desired,
        last_scale_time=time_now() if rescaled else hpa.status.last_scale_time,
        observed_generation=hpa.metadata.generation,
    )


def controllers() -> list[Controller[Any]]:
    autoscaler = Autoscaler()
    return [
        Controller(
            HorizontalPodAutoscaler,
            autoscaler.reconcile,
            component="horizontal-pod-autoscaler",
            when=ChangePredicate(autoscaler.concerns),
            uses=[Use(Pod, cached=True)],
        )
    ]
