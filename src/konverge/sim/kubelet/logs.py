"""What `kubectl logs` shows of a simulated container: when it began, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.sim.kubelet.containers import ContainerState, Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.kubelet.status import time
from konverge.wire.message import Producer, Sink

Obj = dict[str, Any]


def serve(machines: Callable[[], dict[str, PodMachine]]) -> Callable[[Obj, str, Any], Producer]:
    """The log of a container, as the API server asks for it."""

    def of(pod: Obj, container: str, query: Any) -> Producer:
        machine = machines().get(pod["metadata"]["uid"])
        found = {**machine.inits, **machine.mains}.get(container) if machine is not None else None
        text = "\n".join([*_lines(found), ""]) if found is not None else ""

        async def produce(sink: Sink) -> None:
            sink.write(text.encode())

        return produce

    return of


def _lines(one: ContainerState) -> list[str]:
    lines = []
    if one.mode is Mode.RUNNING:
        lines.append(f"{time(one.began)} {one.name}: simulated run {one.runs} began")
    elif one.end is not None:
        lines.append(f"{time(one.end.began)} {one.name}: simulated run {one.runs} began")
        lines.append(f"{time(one.end.ended)} {one.name}: exit {one.end.code} ({one.end.reason})")
    return lines
