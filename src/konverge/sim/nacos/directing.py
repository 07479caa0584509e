"""What the probes of a server's container would find, as the script that its pod lives by. Pure."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from konverge.objects.kinds.core_v1 import Container, Pod, Probe
from konverge.sim.kubelet.behaviour import Behaviour
from konverge.sim.nacos.handler import NacosHandler


def behaviour(pod: Pod, container: Container, base: Behaviour, handler: NacosHandler | None, run: int) -> Behaviour:
    """`base` is what annotations and rules say; a server that is well adds nothing to it. `run` is its number."""
    if handler is not None and handler.member.exit_code is not None and base.exit_code is None:
        return replace(base, exit_code=handler.member.exit_code, exit_after=0.0, exit_times=run, ready_after=inf)
    startup, readiness, liveness = container.startup_probe, container.readiness_probe, container.liveness_probe
    if startup is not None and not _started(pod, container.name) and not _passes(startup, container, handler):
        return replace(base, ready_after=inf)
    if liveness is not None and not _passes(liveness, container, handler):
        return replace(base, ready_after=inf)
    if readiness is not None and not _passes(readiness, container, handler):
        return replace(base, ready_after=None)
    return base


def _started(pod: Pod, name: str) -> bool:
    return any(one.name == name and one.started for one in pod.status.container_statuses)


def _passes(probe: Probe, container: Container, handler: NacosHandler | None) -> bool:
    if handler is None or not handler.member.open or handler.member.frozen:
        return False
    if probe.http_get is not None:
        port = _number(probe.http_get.port, container)
        return port in handler.ports and 200 <= handler.status(port, probe.http_get.path or "/") < 400
    if probe.tcp_socket is not None:
        return True
    return not handler.unready()


def _number(port: int | str, container: Container) -> int:
    if isinstance(port, str) and not port.isdecimal():
        return next((one.container_port for one in container.ports if one.name == port), 0)
    return int(port)
