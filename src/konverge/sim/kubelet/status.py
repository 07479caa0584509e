"""What the API shows of a pod's machine: phase, conditions and container statuses, as a kubelet writes them.

Upstream: pkg/kubelet/status/generate.go. Pure. `wanted` is the status as it should be, `patch` the strategic merge
patch that makes it so: conditions are merged by type, so those that others have written stay.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.objects.times import format_time
from konverge.sim.kubelet.containers import ContainerState, Mode, Run
from konverge.sim.kubelet.machine import PodMachine, as_container

Obj = dict[str, Any]

_ORDER = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_MESSAGES = 12 * 1024
"""Bytes of all messages of a pod's ends. Upstream: MaxPodTerminationMessageLogLength."""
_COMPARED = ("status", "reason", "message", "observedGeneration")


def wanted(machine: PodMachine, host_ip: str, pod_ip: str) -> Obj:
    """The whole status, except for the times of conditions."""
    pod, phase = machine.pod, machine.phase
    status: Obj = {
        "phase": phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        **({} if machine.unmounted else {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}),
        "startTime": time(machine.began),
        "observedGeneration": pod.metadata.generation,
        "containerStatuses": [_container(machine, machine.mains[spec.name], spec) for spec in pod.spec.containers],
    }
    if pod.spec.init_containers:
        init = [_container(machine, machine.inits[spec.name], spec) for spec in pod.spec.init_containers]
        status["initContainerStatuses"] = init
    if pod.spec.ephemeral_containers:
        ephemeral = [(machine.ephemerals[spec.name], spec) for spec in pod.spec.ephemeral_containers]
        status["ephemeralContainerStatuses"] = [
            _container(machine, state, as_container(spec)) for state, spec in ephemeral
        ]
    if machine.failure is not None:
        status["reason"], status["message"] = machine.failure
    status["conditions"] = _conditions(machine, phase)
    return status


def time(moment: float) -> str:
    return format_time(datetime.fromtimestamp(moment, UTC))


# ------------------------------------------------------------------ containers


def _container(machine: PodMachine, container: ContainerState, spec: Container) -> Obj:
    pod = machine.pod
    status: Obj = {
        "name": container.name,
        "image": spec.image or "",
        "imageID": f"sim://{spec.image}" if container.runs else "",
        "ready": container.ready,
        "restartCount": container.restarts,
        "started": container.up,
        "state": _state(container, pod, machine.script(container).age),
        "lastState": {},
    }
    if container.runs:
        status["containerID"] = _identity(pod, container.name, container.runs)
    if container.last is not None:
        before = _identity(pod, container.name, max(container.runs - 1, 1))
        status["lastState"] = {"terminated": _terminated(container.last, pod, before)}
    if container.runs and spec.resources is not None:
        status["resources"] = to_dict(spec.resources)
        if spec.resources.requests:
            status["allocatedResources"] = status["resources"]["requests"]
    return status


def _identity(pod: Pod, name: str, run: int) -> str:
    return f"sim://{pod.metadata.uid}/{name}/{run}"


def _state(container: ContainerState, pod: Pod, age: float) -> Obj:
    if container.mode is Mode.RUNNING:
        return {"running": {"startedAt": time(container.began - age)}}
    if container.mode is Mode.ENDED and container.end is not None:
        return {"terminated": _terminated(container.end, pod, _identity(pod, container.name, container.runs))}
    return {"waiting": {"reason": container.reason} | ({"message": container.message} if container.message else {})}


def _terminated(run: Run, pod: Pod, identity: str) -> Obj:
    times = {"startedAt": time(run.began), "finishedAt": time(run.ended)}
    text = run.message.encode()[: _share_of_messages(pod)].decode(errors="ignore")
    message = {"message": text} if text else {}
    return {"exitCode": run.code, "reason": run.reason, **message, **times, "containerID": identity}


def _share_of_messages(pod: Pod) -> int:  # upstream: normalizeStatus (pkg/kubelet/status/status_manager.go)
    """Bytes of the message of one container's end."""
    spec = pod.spec
    return _MESSAGES // (len(spec.containers) + len(spec.init_containers) + len(spec.ephemeral_containers) or 1)


# ------------------------------------------------------------------ conditions


def _conditions(machine: PodMachine, phase: str) -> list[Obj]:
    pod = machine.pod
    ready = _containers_ready(machine, phase)
    alive = phase in ("Pending", "Running") and not machine.unmounted
    verdicts = {
        "PodReadyToStartContainers": {"status": "True" if alive else "False"},
        "Initialized": _initialized(machine, phase),
        "ContainersReady": ready,
        "Ready": ready if ready["status"] != "True" else _gates(pod),
        "PodScheduled": {"status": "True"},
    }
    generation = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
    return [{"type": name, **verdicts[name], **generation} for name in _ORDER]


def _containers_ready(machine: PodMachine, phase: str) -> Obj:
    if phase in ("Succeeded", "Failed"):
        return {"status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    watched = [container for container in machine.inits.values() if container.sidecar] + list(machine.mains.values())
    unready = [container.name for container in watched if not container.ready]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _initialized(machine: PodMachine, phase: str) -> Obj:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    inits = machine.inits.values()
    incomplete = [init.name for init in inits if not (init.up if init.sidecar else init.ready)]
    if machine.initialized or not incomplete:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _gates(pod: Pod) -> Obj:
    present = {condition.type: condition.status for condition in pod.status.conditions}
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
    for name in ("podIPs", "hostIPs"):
        if name in changed and present.get(name):  # a merge would keep the address that it had in another network
            changed[name] = [*changed[name], {"$patch": "replace"}]
    conditions = _changed_conditions(present.get("conditions") or [], status["conditions"], now)
    if conditions:
        changed["conditions"] = conditions
    if not changed:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changed}


def _changed_conditions(present: list[Obj], conditions: list[Obj], now: float) -> list[Obj]:
    old = {condition["type"]: condition for condition in present}
    changed = []
    for condition in conditions:
        before = old.get(condition["type"], {})
        if all(before.get(name) == condition.get(name) for name in _COMPARED):
            continue
        since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
        cleared: Obj = {name: None for name in ("reason", "message") if name in before and name not in condition}
        changed.append({**condition, **cleared, "lastProbeTime": None, "lastTransitionTime": since or time(now)})
    return changed
