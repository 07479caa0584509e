"""What the API shows of a pod's machine: phase, conditions and container statuses, in kubelet's words.

Pure. `wanted` is the status as it should be, `patch` the strategic merge patch that makes it so: conditions are merged
by type, so those that others have written stay.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.objects.times import format_time
from konverge.sim.kubelet.containers import ContainerState, Mode, Run
from konverge.sim.kubelet.machine import PodMachine

Obj = dict[str, Any]

_ORDER = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def wanted(machine: PodMachine, host_ip: str, pod_ip: str) -> Obj:
    """The whole status, except for the times of conditions."""
    pod, phase = machine.pod, machine.phase
    status: Obj = {
        "phase": phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": time(machine.began),
        "observedGeneration": pod.metadata.generation,
        "containerStatuses": [_container(machine, machine.mains[one.name], one) for one in pod.spec.containers],
    }
    if pod.spec.init_containers:
        init = [_container(machine, machine.inits[one.name], one) for one in pod.spec.init_containers]
        status["initContainerStatuses"] = init
    if machine.failure is not None:
        status["reason"], status["message"] = machine.failure
    status["conditions"] = _conditions(machine, phase)
    return status


def time(moment: float) -> str:
    return format_time(datetime.fromtimestamp(moment, UTC))


# ------------------------------------------------------------------ containers


def _container(machine: PodMachine, one: ContainerState, spec: Container) -> Obj:
    pod = machine.pod
    status: Obj = {
        "name": one.name,
        "image": spec.image or "",
        "imageID": f"sim://{spec.image}" if one.runs else "",
        "ready": one.ready,
        "restartCount": one.restarts,
        "started": one.up,
        "state": _state(one, pod),
        "lastState": {},
    }
    if one.runs:
        status["containerID"] = _identity(pod, one.name, one.runs)
    if one.last is not None:
        status["lastState"] = {"terminated": _terminated(one.last, _identity(pod, one.name, max(one.runs - 1, 1)))}
    if one.runs and spec.resources is not None:
        status["resources"] = to_dict(spec.resources)
    return status


def _identity(pod: Pod, name: str, run: int) -> str:
    return f"sim://{pod.metadata.uid}/{name}/{run}"


def _state(one: ContainerState, pod: Pod) -> Obj:
    if one.mode is Mode.RUNNING:
        return {"running": {"startedAt": time(one.began)}}
    if one.mode is Mode.ENDED and one.end is not None:
        return {"terminated": _terminated(one.end, _identity(pod, one.name, one.runs))}
    return {"waiting": {"reason": one.reason} | ({"message": one.message} if one.message else {})}


def _terminated(run: Run, identity: str) -> Obj:
    times = {"startedAt": time(run.began), "finishedAt": time(run.ended)}
    words = {"message": run.message} if run.message else {}
    return {"exitCode": run.code, "reason": run.reason, **words, **times, "containerID": identity}


# ------------------------------------------------------------------ conditions


def _conditions(machine: PodMachine, phase: str) -> list[Obj]:
    pod = machine.pod
    ready = _containers_ready(machine, phase)
    alive = phase in ("Pending", "Running")
    found = {
        "PodReadyToStartContainers": {"status": "True" if alive else "False"},
        "Initialized": _initialized(machine, phase),
        "ContainersReady": ready,
        "Ready": ready if ready["status"] != "True" else _gates(pod),
        "PodScheduled": {"status": "True"},
    }
    generation = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
    return [{"type": name, **found[name], **generation} for name in _ORDER]


def _containers_ready(machine: PodMachine, phase: str) -> Obj:
    if phase in ("Succeeded", "Failed"):
        return {"status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    watched = [one for one in machine.inits.values() if one.sidecar] + list(machine.mains.values())
    unready = [one.name for one in watched if not one.ready]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _initialized(machine: PodMachine, phase: str) -> Obj:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    open_ones = [one.name for one in machine.inits.values() if not (one.up if one.sidecar else one.ready)]
    if machine.initialized or not open_ones:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(open_ones)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _gates(pod: Pod) -> Obj:
    present = {one.type: one.status for one in pod.status.conditions}
    messages = []
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in present:
            messages.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif present[name] != "True":
            messages.append(f'the status of pod readiness gate "{name}" is not "True", but {present[name]}')
    if not messages:
        return {"status": "True"}
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(messages)}


# ------------------------------------------------------------------ the difference


def patch(pod: Pod, status: Obj, now: float) -> Obj | None:
    """The body of a strategic merge patch, guarded by the pod's identity; None when all is as it should be."""
    present: Obj = to_dict(pod).get("status") or {}
    changed = {name: value for name, value in status.items() if name != "conditions" and present.get(name) != value}
    changed |= {name: None for name in ("reason", "message") if name in present and name not in status}
    conditions = _changed_conditions(present.get("conditions") or [], status["conditions"], now)
    if conditions:
        changed["conditions"] = conditions
    if not changed:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changed}


def _changed_conditions(present: list[Obj], conditions: list[Obj], now: float) -> list[Obj]:
    old = {one["type"]: one for one in present}
    changed = []
    for one in conditions:
        before = old.get(one["type"], {})
        if all(before.get(name) == one.get(name) for name in ("status", "reason", "message", "observedGeneration")):
            continue
        since = before.get("lastTransitionTime") if before.get("status") == one["status"] else None
        cleared: Obj = {name: None for name in ("reason", "message") if name in before and name not in one}
        changed.append({**one, **cleared, "lastProbeTime": None, "lastTransitionTime": since or time(now)})
    return changed
