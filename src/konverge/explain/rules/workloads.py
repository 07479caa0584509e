"""How the kinds that make pods are. Pure. Upstream: kstatus (sigs.k8s.io/cli-utils/pkg/kstatus/status/core.go)."""

from __future__ import annotations

from konverge.explain.model import READY, Health, Ref, Verdict
from konverge.explain.reading import Obj, at, condition, holds, items, mapping, moment, number, text
from konverge.explain.refusals import refusal
from konverge.explain.sentences import NOTHING, Sentence, say
from konverge.explain.texts import shorten
from konverge.explain.world import World, message_of

PATIENCE = 60.0
"""Seconds in which a controller looks at a new spec."""
ZERO = Verdict(Health.READY, say("is scaled to zero"), at_rest=True)
_REFUSED = ("FailedCreate", "FailedDaemonPod", "FailedUpdate", "RecreatingFailedPod")


def judge_deployment(ref: Ref, obj: Obj, world: World) -> Verdict:
    wanted = number(obj, "spec", "replicas", default=1)
    status = mapping(obj, "status")
    paused = at(obj, "spec", "paused") is True
    updated, total = number(status, "updatedReplicas"), number(status, "replicas")
    available = number(status, "availableReplicas")
    rolled_out = updated >= wanted and total <= updated and available >= wanted
    if paused and not rolled_out:
        advice = say("kubectl rollout resume deployment/{name} -n {namespace}", name=ref.name, namespace=ref.namespace)
        says = say("is paused: its changes are not rolled out")
        return Verdict(Health.WAITING, says, cause="paused", advice=advice)
    if (unseen := _unseen(obj, world, say("the Deployment controller"))) is not None:
        return unseen
    if rolled_out:
        return ZERO if wanted == 0 else Verdict(Health.READY, _ready(available, wanted))
    sets = _newest_first(world.owned(ref), "ReplicaSet", world)
    alive = tuple(child for child in sets if number(world.get(child), "spec", "replicas"))
    blame = alive or tuple(sets[:1])
    failure = condition(obj, "ReplicaFailure")
    if text(failure, "status") == "True" and not number(status, "replicas"):
        refused = refusal(text(failure, "message"), ref.namespace, world)
        if refused is not None:
            return refused
    says = say("has {available} of {wanted} replicas available", available=available, wanted=wanted)
    if 0 < updated < wanted:
        says = say("{text}, {updated} of them updated", text=says, updated=updated)
    if text(condition(obj, "Progressing"), "reason") == "ProgressDeadlineExceeded":
        says = say("{text}, and its progress deadline is over", text=says)
        return Verdict(Health.FAILED, says, waits_for=blame, cause="rollout")
    return Verdict(Health.PROGRESSING, says, waits_for=blame)


def _ready(ready: int, wanted: int) -> Sentence:
    return say("has {ready} of {wanted} replicas ready", ready=ready, wanted=wanted)


def _newest_first(refs: list[Ref], kind: str, world: World) -> list[Ref]:
    chosen = [ref for ref in refs if ref.kind == kind]
    return sorted(chosen, key=lambda ref: moment(world.get(ref), "metadata", "creationTimestamp") or 0.0, reverse=True)


def _unseen(obj: Obj, world: World, controller: Sentence) -> Verdict | None:
    """The controller has not looked at the present spec."""
    generation = number(obj, "metadata", "generation")
    if not generation or number(obj, "status", "observedGeneration") >= generation:
        return None
    if world.now and world.is_older(obj, PATIENCE):
        says = say("was not looked at by {controller} since its spec changed", controller=controller)
        advice = say("see whether {controller} runs", controller=controller)
        return Verdict(Health.WAITING, says, cause="no-controller", advice=advice)
    return Verdict(Health.PROGRESSING, say("is about to be looked at by {controller}", controller=controller))


def refused_pods(ref: Ref, world: World) -> Verdict | None:
    """Its controller could not create a pod or a claim, by the latest of its events."""
    events = world.warnings(ref, *_REFUSED)
    if not events:
        return None
    message = message_of(events[0])
    says = say("cannot create what it needs: {detail}", detail=shorten(message))
    return refusal(message, ref.namespace, world) or Verdict(Health.WAITING, says, cause="refused")


def judge_replica_set(ref: Ref, obj: Obj, world: World) -> Verdict:
    wanted, ready = number(obj, "spec", "replicas", default=1), number(obj, "status", "readyReplicas")
    if ready >= wanted and number(obj, "status", "replicas") <= wanted:
        return READY
    if number(obj, "status", "replicas") < wanted:
        failure = condition(obj, "ReplicaFailure")
        if text(failure, "status") == "True":
            refused = refusal(text(failure, "message"), ref.namespace, world)
            says = say("cannot create its pods: {detail}", detail=shorten(text(failure, "message")))
            return refused or refused_pods(ref, world) or Verdict(Health.WAITING, says, cause="refused")
        if (refused := refused_pods(ref, world)) is not None:
            return refused
    return Verdict(Health.PROGRESSING, _ready(ready, wanted), waits_for=_pods(ref, world))


def _pods(ref: Ref, world: World) -> tuple[Ref, ...]:
    return tuple(child for child in world.owned(ref) if child.kind == "Pod")


def judge_stateful_set(ref: Ref, obj: Obj, world: World) -> Verdict:
    wanted, status = number(obj, "spec", "replicas", default=1), mapping(obj, "status")
    if (unseen := _unseen(obj, world, say("the StatefulSet controller"))) is not None:
        return unseen
    ready, present = number(status, "readyReplicas"), number(status, "replicas")
    if ready >= wanted and present <= wanted:
        return _stateful_update(ref, obj, world, wanted)
    if present < wanted and (refused := refused_pods(ref, world)) is not None:
        return refused
    blame = _pods(ref, world)
    if not blame and number(obj, "status", "observedGeneration"):
        return Verdict(Health.PROGRESSING, say("has none of its {wanted} pods yet", wanted=wanted))
    return Verdict(Health.PROGRESSING, _ready(ready, wanted), waits_for=blame)


def _stateful_update(ref: Ref, obj: Obj, world: World, wanted: int) -> Verdict:
    status = mapping(obj, "status")
    if text(obj, "spec", "updateStrategy", "type") == "OnDelete":
        return Verdict(Health.READY, _ready(wanted, wanted))
    partition = number(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    updated = number(status, "updatedReplicas")
    expected = max(wanted - partition, 0)
    current, update = text(status, "currentRevision"), text(status, "updateRevision")
    if current != update and updated < expected:
        says = say("has {updated} of {expected} pods updated", updated=updated, expected=expected)
        return Verdict(Health.PROGRESSING, says, waits_for=_pods(ref, world))
    return ZERO if wanted == 0 else Verdict(Health.READY, _ready(wanted, wanted))


def judge_daemon_set(ref: Ref, obj: Obj, world: World) -> Verdict:
    status = mapping(obj, "status")
    if (unseen := _unseen(obj, world, say("the DaemonSet controller"))) is not None:
        return unseen
    wanted, ready = number(status, "desiredNumberScheduled"), number(status, "numberReady")
    updated = number(status, "updatedNumberScheduled")
    if text(obj, "spec", "updateStrategy", "type") == "OnDelete":
        updated = wanted
    says = say("has {ready} of {wanted} pods ready", ready=ready, wanted=wanted)
    if ready >= wanted and updated >= wanted:
        return Verdict(Health.READY, says if wanted else say("has no node to run on"))
    if number(status, "currentNumberScheduled") < wanted and (refused := refused_pods(ref, world)) is not None:
        return refused
    return Verdict(Health.PROGRESSING, says, waits_for=_pods(ref, world))


def judge_job(ref: Ref, obj: Obj, world: World) -> Verdict:
    if holds(obj, "Complete") == "True":
        return Verdict(Health.READY, say("has completed"))
    for name in ("Failed", "FailureTarget"):
        failed = condition(obj, name)
        if text(failed, "status") == "True":
            why = shorten(text(failed, "message") or text(failed, "reason"))
            says = say("failed: {detail}", detail=why)
            return Verdict(Health.FAILED, says, cause="failed-job", waits_for=_pods(ref, world))
    if at(obj, "spec", "suspend") is True:
        advice = say("set spec.suspend of the {kind} {name} to false", kind=ref.kind, name=ref.name)
        return Verdict(Health.WAITING, say("is suspended"), cause="suspended", advice=advice)
    active = number(obj, "status", "active")
    if not active and (refused := refused_pods(ref, world)) is not None:
        return refused
    if not active and not number(obj, "status", "succeeded"):
        return Verdict(Health.PROGRESSING, say("has not begun yet"), waits_for=_pods(ref, world))
    return Verdict(Health.READY, say("is at work"), waits_for=_pods(ref, world), like_children=True)


def judge_cron_job(ref: Ref, obj: Obj, world: World) -> Verdict:
    if at(obj, "spec", "suspend") is True:
        advice = say("set spec.suspend of the {kind} {name} to false", kind=ref.kind, name=ref.name)
        return Verdict(Health.WAITING, say("is suspended: it begins no Job"), cause="suspended", advice=advice)
    bad = world.warnings(ref, "UnparseableSchedule", "UnParseableCronJobSchedule", "InvalidSchedule", "UnknownTimeZone")
    if bad:
        whose = say("schedule is not valid: {detail}", detail=shorten(message_of(bad[0])))
        advice = say("correct spec.schedule and spec.timeZone")
        return Verdict(Health.FAILED, whose=whose, cause="schedule", advice=advice)
    if (refused := refused_pods(ref, world)) is not None and not items(obj, "status", "active"):
        return refused
    jobs = _newest_first(world.owned(ref), "Job", world)
    return Verdict(Health.READY, say("waits for its time"), waits_for=tuple(jobs[:1]), like_children=True)


def judge_autoscaler(ref: Ref, obj: Obj, world: World) -> Verdict:
    target = tuple(
        Ref(text(entry, "kind"), text(entry, "name"), ref.namespace, text(entry, "apiVersion").rpartition("/")[0])
        for entry in [mapping(obj, "spec", "scaleTargetRef")]
    )
    for name, cause in (("AbleToScale", "scale-target"), ("ScalingActive", "no-metrics")):
        state = condition(obj, name)
        if text(state, "status") != "False" or text(state, "reason") == "ScalingDisabled":
            continue
        missing = tuple(entry for entry in target if world.is_missing(entry))
        if missing:
            return Verdict(Health.WAITING, say("waits for {object}", object=missing[0].named), waits_for=missing)
        says = say("cannot scale: {detail}", detail=shorten(text(state, "message")))
        advice = _METRICS_ADVICE if cause == "no-metrics" else NOTHING
        return Verdict(Health.WAITING, says, cause=cause, advice=advice)
    if not items(obj, "status", "conditions"):
        return Verdict(Health.PROGRESSING, say("has not looked at its target yet"))
    return READY


_METRICS_ADVICE = say(
    "see whether the metrics API is served (kubectl get apiservices) and the pods have resource requests"
)
