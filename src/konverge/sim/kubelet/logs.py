"""What `kubectl logs` shows of a simulated container: when it began, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from konverge.apiserver import status
from konverge.sim.kubelet.containers import ContainerState, Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.kubelet.status import time
from konverge.wire.message import Producer, Sink

Obj = dict[str, Any]
Line = tuple[str, str]
"""A time and a text."""


def producer(machine: PodMachine | None, pod: Obj, container: str, query: Mapping[str, Sequence[str]]) -> Producer:
    """The log of a container, as the API server asks for it. Raises ApiError where a kubelet refuses."""
    state = {**machine.inits, **machine.mains}.get(container) if machine is not None else None
    previous = _truth(query, "previous")
    if state is not None:
        refuse(state, pod["metadata"]["name"], previous)
    lines = _lines(state, previous) if state is not None else []
    tail = query.get("tailLines")
    if tail and tail[0]:
        lines = lines[len(lines) - min(int(tail[0]), len(lines)) :]
    stamped = _truth(query, "timestamps")
    text = "".join(f"{moment} {line}\n" if stamped else f"{line}\n" for moment, line in lines)
    limit = query.get("limitBytes")

    async def produce(sink: Sink) -> None:
        sink.write(text.encode()[: int(limit[0]) if limit and limit[0] else None])

    return produce


def refuse(container: ContainerState, pod: str, previous: bool) -> None:
    """A kubelet has no log of a run that has not been."""
    if previous:
        if container.last is None:
            raise status.bad_request(f'previous terminated container "{container.name}" in pod "{pod}" not found')
    elif container.mode in (Mode.NEW, Mode.WAITING) and container.runs == 0:
        raise status.bad_request(f'container "{container.name}" in pod "{pod}" is waiting to start: {container.reason}')


def _lines(container: ContainerState, previous: bool) -> list[Line]:
    run = container.last if previous or container.mode is Mode.WAITING else container.end
    number = container.runs - 1 if previous and container.mode is not Mode.WAITING else container.runs
    if container.mode is Mode.RUNNING and not previous:
        return [
            (time(container.began), f"{time(container.began)} {container.name}: simulated run {container.runs} began")
        ]
    if run is None:
        return []
    return [
        (time(run.began), f"{time(run.began)} {container.name}: simulated run {number} began"),
        (time(run.ended), f"{time(run.ended)} {container.name}: exit {run.code} ({run.reason})"),
    ]


def _truth(query: Mapping[str, Sequence[str]], name: str) -> bool:
    return (query.get(name) or [""])[0] in ("1", "t", "T", "true", "TRUE", "True")
