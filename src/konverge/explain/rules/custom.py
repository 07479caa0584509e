"""How a custom resource is, by the conventions that operators keep: conditions, phase, observedGeneration. Pure.

Upstream: the API conventions of Kubernetes, and kstatus' generic rules.
"""

from __future__ import annotations

from dataclasses import replace

from konverge.explain.links import links
from konverge.explain.model import Health, Link, Ref, Verdict
from konverge.explain.reading import Obj, condition, items, mapping, number, text
from konverge.explain.refusals import LONGEST, refusal
from konverge.explain.rules.operators import unseen_by_operator
from konverge.explain.rules.upgrades import with_upgrade
from konverge.explain.sentences import Sentence, explained, say
from konverge.explain.texts import shorten
from konverge.explain.world import World, message_of

BAD = ("Stalled", "Degraded", "Failed", "Failing", "Failure", "Error", "ReconcileError")
GOOD = ("Ready", "Available", "Healthy", "Succeeded", "Completed", "Complete", "Established", "Synced", "Reconciled")
UNDER_WAY = ("Reconciling", "Progressing", "Updating", "Creating")
READY_PHASES = frozenset(
    (
        "running",
        "ready",
        "active",
        "bound",
        "succeeded",
        "completed",
        "complete",
        "healthy",
        "available",
        "online",
        "deployed",
        "ok",
    )
)
RESTING_PHASES = frozenset(("hibernated",))
"""Its user wants it so: however few of its replicas are ready."""
MOST_MESSAGES = 32
"""Conditions of one object whose messages are looked at."""
FAILED_PHASES = frozenset(("failed", "error", "degraded", "crashed", "invalid", "unhealthy", "lost"))


def judge_custom(ref: Ref, obj: Obj, world: World) -> Verdict:
    if (unseen := unseen_by_operator(ref, obj, world)) is not None:
        return unseen
    verdict = _by_conditions(obj) or _by_phase(obj)
    if verdict is None:
        children = _needed(ref, world)
        return Verdict(Health.READY, say("exists"), waits_for=children, like_children=True)
    if verdict.health is Health.READY:
        return verdict
    messages = _messages(obj, verdict)
    refusals = (refusal(message, ref.namespace, world) for message in messages)
    refused = next(filter(None, refusals), None) or _refused_in_events(ref, obj, world)
    if refused is not None:
        return refused
    needed = _needed(ref, world, said="\n".join(messages))
    verdict = with_upgrade(obj, verdict)
    return replace(verdict, cause=verdict.cause or "custom", waits_for=needed)


def _needed(ref: Ref, world: World, said: str = "") -> tuple[Ref, ...]:
    """What it owns, and what it names. A name that does not exist may also be one that its operator will create: it
    counts where the operator says nothing, or says this name."""

    def counts(link: Link) -> bool:
        if link.relation == "owns" or not world.is_missing(link.ref):
            return True
        return link.required and (not said or link.ref.name in said)

    return tuple(link.ref for link in links(ref, world) if counts(link))


def _by_conditions(obj: Obj) -> Verdict | None:
    for name in BAD:
        state = condition(obj, name)
        if text(state, "status") == "True":
            return Verdict(Health.FAILED, _says(name, state, bad=True), cause="condition")
    if (resting := _at_rest(obj)) is not None:
        return resting
    for name in GOOD:
        state = condition(obj, name)
        status = text(state, "status")
        if status == "False":
            failed = text(obj, "status", "phase").lower() in FAILED_PHASES
            return Verdict(Health.FAILED if failed else Health.WAITING, _says(name, state), cause="condition")
        if status == "Unknown":
            return Verdict(Health.PROGRESSING, _says(name, state))
        if status == "True" and name in ("Ready", "Available", "Healthy", "Succeeded", "Completed", "Complete"):
            return Verdict(Health.READY, _is(name))
    for name in UNDER_WAY:
        state = condition(obj, name)
        if text(state, "status") == "True":
            return Verdict(Health.PROGRESSING, _says(name, state, bad=True))
    return None


def _at_rest(obj: Obj) -> Verdict | None:
    """Its user wants it to do nothing, and it does nothing: no action is needed."""
    hibernated = condition(obj, "Hibernated")
    if text(hibernated, "status") == "True":
        says = explained(say("hibernates"), shorten(text(hibernated, "message")))
        return Verdict(Health.READY, says, at_rest=True)
    stopped = "Stopped" in (text(obj, "status", "phase"), text(obj, "status", "printableStatus"))
    if stopped and _is_to_stop(mapping(obj, "spec")):
        return Verdict(Health.READY, say("is stopped, as its spec asks"), at_rest=True)
    return None


def _is_to_stop(spec: Obj) -> bool:
    """As virtual machines are switched off: KubeVirt's fields, and those of Wukong."""
    return (
        text(spec, "powerState") == "Stopped" or text(spec, "runStrategy") == "Halted" or spec.get("running") is False
    )


def _says(name: str, state: Obj, *, bad: bool = False) -> Sentence:
    return explained(_is(name) if bad else _is_not(name), shorten(text(state, "message") or text(state, "reason")))


def _is(name: str) -> Sentence:
    return say("is ready") if name == "Ready" else say("is {condition}", condition=name.lower())


def _is_not(name: str) -> Sentence:
    return say("is not ready") if name == "Ready" else say("is not {condition}", condition=name.lower())


def _messages(obj: Obj, verdict: Verdict) -> list[str]:
    """Everything that its conditions say, since a refusal may be in another one than that which decides."""
    states = [entry for entry in items(obj, "status", "conditions") if text(entry, "status") != "Unknown"]
    said = [text(entry, "message") for entry in states if text(entry, "type") not in ("Ready",)]
    own = (text(obj, "status", "message"), verdict.says)
    every = (text(condition(obj, "Ready"), "message"), *said[:MOST_MESSAGES], *own)
    return [message[:LONGEST] for message in every if message]


def _by_phase(obj: Obj) -> Verdict | None:
    status = mapping(obj, "status")
    phase = text(status, "phase") or text(status, "state") or text(status, "health", "status")
    wanted, ready = number(obj, "spec", "replicas", default=-1), number(status, "readyReplicas", default=-1)
    if phase:
        low, message = phase.lower(), shorten(text(status, "message"))
        says = explained(say("is in the phase {phase}", phase=phase), message)
        if low in RESTING_PHASES:
            return Verdict(Health.READY, says, at_rest=True)
        if low in FAILED_PHASES:
            return Verdict(Health.FAILED, says, cause="condition")
        if low not in READY_PHASES:
            return Verdict(Health.PROGRESSING, says)
    if 0 <= ready < wanted:
        return Verdict(Health.PROGRESSING, say("has {ready} of {wanted} replicas ready", ready=ready, wanted=wanted))
    return Verdict(Health.READY, say("is {condition}", condition=phase.lower())) if phase else None


def _refused_in_events(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    for event in world.warnings(ref)[:5]:
        refused = refusal(message_of(event), ref.namespace, world)
        if refused is not None:
            return refused
    return None
