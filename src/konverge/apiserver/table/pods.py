"""Pods: the status that `kubectl get` shows, computed from the phase, the conditions and the containers' states.

Upstream: printPod (pkg/printers/internalversion).
"""

from __future__ import annotations

from typing import NamedTuple

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, is_true, seconds, since, status_of

_MESSAGES = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


class Summary(NamedTuple):
    """What the states of the containers add up to."""

    reason: str
    ready: int
    total: int
    restarts: int
    restarted_at: str


def conditions(obj: Obj) -> list[Obj]:
    """The row of a finished pod has a condition, so that kubectl can leave it out."""
    phase = status_of(obj).get("phase", "")
    if phase not in _MESSAGES:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _MESSAGES[phase]}]


def _is_sidecar(container: Obj | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


class _Restarts:
    """Counts restarts, and remembers the last of them."""

    def __init__(self) -> None:
        self.count, self.last = 0, ""

    def add(self, status: Obj) -> None:
        self.count += status.get("restartCount", 0)
        finished = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if finished and (not self.last or seconds(finished) > seconds(self.last)):
            self.last = finished


def summary(pod: Obj) -> Summary:
    spec, status = pod["spec"], status_of(pod)
    specs = {container["name"]: container for container in spec.get("initContainers") or ()}
    total = len(spec.get("containers") or ()) + sum(map(_is_sidecar, specs.values()))
    reason, initializing, ready, restarts, of_sidecars = _initialize(pod, specs, _first_reason(pod))
    if not initializing or is_true(pod, "Initialized"):
        restarts = of_sidecars
        reason, running = _run(pod, reason, restarts)
        ready += running
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in _MESSAGES:
            reason = "Terminating"
    return Summary(reason, ready, total, restarts.count, restarts.last)


def _first_reason(pod: Obj) -> str:
    """The reason before the containers are looked at."""
    status = status_of(pod)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _initialize(pod: Obj, specs: dict[str, Obj], reason: str) -> tuple[str, bool, int, _Restarts, _Restarts]:
    """The init containers, up to the first that is not done."""
    ready, restarts, of_sidecars = 0, _Restarts(), _Restarts()
    for index, status in enumerate(status_of(pod).get("initContainerStatuses") or ()):
        sidecar = _is_sidecar(specs.get(status.get("name", "")))
        restarts.add(status)
        if sidecar:
            of_sidecars.add(status)
        state = status.get("state") or {}
        if (state.get("terminated") or {"exitCode": 1}).get("exitCode", 0) == 0:
            continue
        if sidecar and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        return _init_reason(state, index, len(specs)), True, ready, restarts, of_sidecars
    return reason, False, ready, restarts, of_sidecars


def _init_reason(state: Obj, index: int, total: int) -> str:
    if state.get("terminated") is not None:
        return f"Init:{_terminated(state['terminated'])}"
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{total}"


def _terminated(state: Obj) -> str:
    if state.get("reason"):
        return str(state["reason"])
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"


def _run(pod: Obj, reason: str, restarts: _Restarts) -> tuple[str, int]:
    """The first container with a reason decides; the number is that of the ready containers."""
    running, failure = 0, ""
    for status in reversed(status_of(pod).get("containerStatuses") or ()):
        restarts.add(status)
        state = status.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            reason = _terminated(state["terminated"])
            if state["terminated"].get("exitCode"):
                failure = reason
        elif status.get("ready") and state.get("running") is not None:
            running += 1
    if reason == "Completed":
        reason = _partly_completed(pod, running, failure)
    return reason, running


def _partly_completed(pod: Obj, running: int, failure: str) -> str:
    if running and is_true(pod, "Ready"):
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def reason(pod: Obj) -> str:
    return summary(pod).reason


def ready(pod: Obj) -> str:
    containers = summary(pod)
    return f"{containers.ready}/{containers.total}"


def restarts(pod: Obj) -> str:
    containers = summary(pod)
    if containers.restarts and containers.restarted_at:
        return f"{containers.restarts} ({since(containers.restarted_at)} ago)"
    return str(containers.restarts)


def ip(pod: Obj) -> str:
    addresses = status_of(pod).get("podIPs") or [{}]
    return addresses[0].get("ip") or NONE


def readiness_gates(pod: Obj) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    passed = sum(is_true(pod, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE
