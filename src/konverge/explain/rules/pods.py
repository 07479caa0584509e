"""How a pod is. Pure. Upstream: kstatus' podConditions, and the waiting reasons of pkg/kubelet/images and container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from konverge.explain.links import pod_links, pod_sources
from konverge.explain.model import READY, Health, Ref, Verdict
from konverge.explain.reading import Obj, at, condition, holds, items, mapping, number, text
from konverge.explain.scheduling import CLAIMS, cause_of, condense
from konverge.explain.sentences import NOTHING, Sentence, explained, say
from konverge.explain.texts import listed, shorten
from konverge.explain.world import World, message_of

PATIENCE = 60.0
"""Seconds in which a pod may come up before its silence is a problem."""
_PULL = frozenset(("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"))
_NOT_STARTED = frozenset(("CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"))
_NO_KEY = re.compile(r"couldn't find key (\S+) in (ConfigMap|Secret) \S+/(\S+)")
_NO_FILE = re.compile(r"references non-existent (?:secret|config) key: (\S+)")
_MOUNT_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "FailedBinding")


def judge_pod(ref: Ref, obj: Obj, world: World) -> Verdict:
    phase = text(obj, "status", "phase")
    if phase == "Succeeded":
        return Verdict(Health.READY, say("has completed"))
    if phase == "Failed":
        return _ended(obj)
    if not text(obj, "spec", "nodeName"):
        return _unplaced(ref, obj, world)
    if (lost := _lost_node(ref, obj, world)) is not None:
        return lost
    for judge in (_waiting_containers, _unmounted, _crashed):
        if (verdict := judge(ref, obj, world)) is not None:
            return verdict
    if holds(obj, "Ready") == "True":
        return READY
    return _unready(ref, obj, world)


def is_ready(obj: Obj | None) -> bool:
    return obj is not None and holds(obj, "Ready") == "True" and text(obj, "status", "phase") == "Running"


def _ended(obj: Obj) -> Verdict:
    reason, message = text(obj, "status", "reason"), text(obj, "status", "message")
    for status in _statuses(obj):
        ended = mapping(status, "state", "terminated")
        if number(ended, "exitCode"):
            name = text(status, "name")
            says = say("failed: container {name} {how}", name=name, how=_exit(ended))
            return Verdict(Health.FAILED, says, cause="failed-pod", container=name)
    says = explained(say("failed"), shorten(message or reason))
    return Verdict(Health.FAILED, says, cause="evicted" if reason == "Evicted" else "failed-pod")


def _statuses(obj: Obj) -> list[Obj]:
    return [*items(obj, "status", "initContainerStatuses"), *items(obj, "status", "containerStatuses")]


def _is_running(status: Obj) -> bool:
    return "running" in mapping(status, "state")


# ------------------------------------------------------------------ a place


def _unplaced(ref: Ref, obj: Obj, world: World) -> Verdict:
    scheduled = condition(obj, "PodScheduled")
    reason, message = text(scheduled, "reason"), text(scheduled, "message")
    if reason == "SchedulingGated" or items(obj, "spec", "schedulingGates"):
        gates = listed(text(gate, "name") for gate in items(obj, "spec", "schedulingGates"))
        says = say("waits until its scheduling gates are removed: {names}", names=gates)
        return Verdict(Health.WAITING, says, cause="scheduling-gate")
    if text(scheduled, "status") == "False":
        if CLAIMS.search(message):
            claims = tuple(link.ref for link in pod_links(ref, obj, world) if link.ref.kind == "PersistentVolumeClaim")
            unbound = [claim.name for claim in claims if text(world.get(claim), "status", "phase") != "Bound"]
            says = (
                say("waits until its claims are bound: {names}", names=listed(unbound))
                if unbound
                else condense(message)
            )
            return Verdict(Health.WAITING, says, cause="claim", waits_for=claims)
        nodes = tuple(world.of_kind("Node")) if "were unschedulable" in message or "taint" in message else ()
        sick = tuple(node for node in nodes if holds(world.get(node) or {}, "Ready") not in ("True", ""))
        return Verdict(Health.WAITING, condense(message), cause=cause_of(message), waits_for=sick)
    if world.is_older(obj, PATIENCE) and world.now:
        scheduler = text(obj, "spec", "schedulerName") or "default-scheduler"
        advice = say("see whether {name} runs, or correct spec.schedulerName", name=scheduler)
        says = say("was never looked at by the scheduler `{name}`", name=scheduler)
        return Verdict(Health.WAITING, says, cause="no-scheduler", advice=advice)
    return Verdict(Health.PROGRESSING, say("is about to be scheduled"))


def _lost_node(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    node = Ref("Node", text(obj, "spec", "nodeName"))
    present = world.get(node)
    lost = holds(present, "Ready") in ("False", "Unknown") if present is not None else world.is_missing(node)
    if not lost or holds(obj, "Ready") == "True":
        return None
    says = say("runs on node {name}, which is not ready", name=node.name)
    return Verdict(Health.WAITING, says, waits_for=(node,), cause="node")


# ------------------------------------------------------------------ containers


def _waiting_containers(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    """The first container that waits for more than its turn."""
    for status in _statuses(obj):
        waiting, name = mapping(status, "state", "waiting"), text(status, "name")
        reason, message = text(waiting, "reason"), text(waiting, "message")
        if reason == "CrashLoopBackOff":
            return _crash_loop(obj, status, mapping(status, "lastState", "terminated"))
        if reason in _PULL:
            return _no_image(ref, obj, world, status, message)
        if reason == "CreateContainerConfigError":
            return _no_config(ref, obj, world, name, message)
        if reason in _NOT_STARTED:
            says = say("cannot start container {name}: {detail}", name=name, detail=shorten(message or reason))
            return Verdict(Health.FAILED, says, cause="container-start")
    return None


def _crash_loop(obj: Obj, status: Obj, ended: Obj) -> Verdict:
    name, restarts = text(status, "name"), number(status, "restartCount")
    killed = text(ended, "reason") == "OOMKilled"
    says = say("crashes in a loop: container {name} {how}", name=name, how=_exit(ended))
    if restarts > 1:
        says = say("{text} (restarted {count} times)", text=says, count=restarts)
    more = say("raise the memory limit of container {name}, or see why it needs more", name=name)
    return Verdict(
        Health.FAILED,
        says,
        cause="out-of-memory" if killed else "crash-loop",
        advice=more if killed else NOTHING,
        container=name,
    )


def _exit(ended: Obj) -> Sentence:
    """How a container ended: `exits with code 1`, with what it left as its termination message."""
    code, reason = number(ended, "exitCode"), text(ended, "reason")
    if reason == "OOMKilled":
        how = say("needs more memory than it may have (OOMKilled, exit code {code})", code=code)
    elif code > 128 and code < 160:
        how = say("is ended by signal {signal} (exit code {code})", signal=code - 128, code=code)
    else:
        how = say("exits with code {code}", code=code)
    return explained(how, shorten(text(ended, "message")))


def _no_image(ref: Ref, obj: Obj, world: World, status: Obj, message: str) -> Verdict:
    name = text(status, "name")
    image = next((text(spec, "image") for spec in _specs(obj) if text(spec, "name") == name), "") or text(
        status, "image"
    )
    # The failure itself says more than the back-off after it.
    causes = [message, *(message_of(event) for event in world.warnings(ref, "Failed"))]
    detail = next((cause for cause in causes if cause and not cause.startswith(("Back-off", "Error: "))), "")
    says = explained(say("cannot pull the image `{image}`", image=image), shorten(detail))
    secrets = tuple(link.ref for link in pod_sources(ref, mapping(obj, "spec")) if link.relation == "pulls with")
    missing = tuple(secret for secret in secrets if world.is_missing(secret))
    advice = say("correct the image's name, or give the pod an imagePullSecret that may pull it")
    return Verdict(Health.FAILED, says, cause="image-pull", waits_for=missing, advice=advice)


def _specs(obj: Obj) -> list[Obj]:
    return [*items(obj, "spec", "initContainers"), *items(obj, "spec", "containers")]


def _no_config(ref: Ref, obj: Obj, world: World, name: str, message: str) -> Verdict:
    says = say("cannot configure container {name}: {detail}", name=name, detail=shorten(message))
    return _source_verdict(ref, obj, world, message) or Verdict(Health.FAILED, says, cause="container-config")


def _source_verdict(ref: Ref, obj: Obj, world: World, message: str) -> Verdict | None:
    """A Secret or ConfigMap that is not there, or lacks a key."""
    key = _NO_KEY.search(message)
    if key is not None:
        return _no_key(f"{key[2]} `{key[3]}`", key[1])
    missing = tuple(link.ref for link in _sources(ref, obj) if world.is_missing(link.ref))
    named = tuple(source for source in missing if f'"{source.name}" not found' in message) or missing
    if named:
        return _waits_for(named)
    file = _NO_FILE.search(message)
    if file is not None:
        kind = "Secret" if "secret key" in message else "ConfigMap"
        volume = re.search(r'for volume "([^"]+)"', message)
        which = next((link.ref for link in _volume_sources(ref, obj, volume[1] if volume else "", kind)), None)
        return _no_key(f"{kind} `{which.name}`" if which is not None else kind, file[1])
    gone = re.search(r'(configmap|secret) "([^"]+)" not found', message)
    if gone is not None:  # the caller may not list them: the kubelet's message has to do
        kind = "Secret" if gone[1] == "secret" else "ConfigMap"
        whose = say("{noun} `{name}` does not exist", noun=kind, name=gone[2])
        return Verdict(Health.WAITING, whose=whose, cause=f"missing-{kind.lower()}")
    return None


def _no_key(source: str, key: str) -> Verdict:
    advice = say("add the key {key} to the {source}", key=key, source=source.replace("`", ""))
    whose = say("{source} has no key `{key}`", source=source, key=key)
    return Verdict(Health.WAITING, whose=whose, cause="missing-key", advice=advice)


def _waits_for(sources: tuple[Ref, ...]) -> Verdict:
    first = say("{noun} {name}", noun=sources[0].kind, name=sources[0].name)
    return Verdict(Health.WAITING, say("waits for {object}", object=first), waits_for=sources)


def _sources(ref: Ref, obj: Obj) -> Iterator:  # type: ignore[type-arg]
    return (link for link in pod_sources(ref, mapping(obj, "spec")) if link.required)


def _volume_sources(ref: Ref, obj: Obj, volume: str, kind: str) -> Iterator:  # type: ignore[type-arg]
    chosen = [entry for entry in items(obj, "spec", "volumes") if not volume or text(entry, "name") == volume]
    return (link for link in pod_sources(ref, {"volumes": chosen}) if link.ref.kind == kind)


def _unmounted(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    """No container has begun, and events say why."""
    if any(_is_running(status) or mapping(status, "lastState", "terminated") for status in _statuses(obj)):
        return None
    missing = tuple(link.ref for link in _sources(ref, obj) if link.relation == "mounts" and world.is_missing(link.ref))
    for event in world.warnings(ref, *_MOUNT_EVENTS)[:5]:
        verdict = _source_verdict(ref, obj, world, message_of(event))
        if verdict is not None:
            return verdict
        says = say("cannot start: {detail}", detail=shorten(message_of(event)))
        return Verdict(Health.WAITING, says, cause="volume", waits_for=missing)
    if missing:
        return _waits_for(missing)
    return None


def _crashed(ref: Ref, obj: Obj, world: World) -> Verdict | None:
    """A container that ended badly, and begins again or does not."""
    for status in _statuses(obj):
        ended = mapping(status, "state", "terminated")
        if number(ended, "exitCode"):
            name = text(status, "name")
            says = say("has a container that ended: {name} {how}", name=name, how=_exit(ended))
            return Verdict(Health.FAILED, says, cause="crash-loop", container=name)
    return None


# ------------------------------------------------------------------ readiness


def _unready(ref: Ref, obj: Obj, world: World) -> Verdict:
    ready = condition(obj, "Ready")
    if text(ready, "reason") == "ReadinessGatesNotReady":
        says = say("waits for its readiness gates: {detail}", detail=shorten(text(ready, "message")))
        return Verdict(Health.WAITING, says, cause="gate")
    unready = [status for status in _statuses(obj) if at(status, "ready") is not True and _is_running(status)]
    if not unready:
        if world.now and world.is_older(obj, 10 * PATIENCE):
            return Verdict(Health.WAITING, say("does not start, and says no reason"), cause="not-started")
        return Verdict(Health.PROGRESSING, say("is starting"))
    status = unready[0]
    name, probes = text(status, "name"), world.warnings(ref, "Unhealthy")
    last = mapping(status, "lastState", "terminated")
    if probes:
        says = say("is not ready: container {name}: {detail}", name=name, detail=shorten(message_of(probes[0])))
        return Verdict(Health.WAITING, says, cause="probe", container=name)
    if number(last, "exitCode"):
        says = say(
            "is not ready: container {name} was restarted {count} times, it {how}",
            name=name,
            count=number(status, "restartCount"),
            how=_exit(last),
        )
        return Verdict(Health.WAITING, says, cause="crash-loop", container=name)
    probed = any(text(spec, "name") == name and mapping(spec, "readinessProbe") for spec in _specs(obj))
    late = world.now and world.is_older(status, PATIENCE, "state", "running", "startedAt")
    if not late:
        says = say("is starting: container {name} runs and is not ready yet", name=name)
        return Verdict(Health.PROGRESSING, says)
    says = (
        say("is not ready: container {name} runs, but its readiness probe does not succeed", name=name)
        if probed
        else say("is not ready: container {name} runs", name=name)
    )
    return Verdict(Health.WAITING, says, cause="probe", container=name)
