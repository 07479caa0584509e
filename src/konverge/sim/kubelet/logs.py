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
    found = {**machine.inits, **machine.mains}.get(container) if machine is not None else None
    previous = _truth(query, "previous")
    if found is not None:
        refuse(found, pod["metadata"]["name"], previous)
    lines = _lines(found, previous) if found is not None else []
    tail = query.get("tailLines")
    if tail and tail[0]:
        lines = lines[len(lines) - min(int(tail[0]), len(lines)) :]
    stamped = _truth(query, "timestamps")
    text = "".join(f"{moment} {words}\n" if stamped else f"{words}\n" for moment, words in lines)
    limit = query.get("limitBytes")

    async def produce(sink: Sink) -> None:
        sink.write(text.encode()[: int(limit[0]) if limit and limit[0] else None])

    return produce


def refuse(one: ContainerState, pod: str, previous: bool) -> None:
    """A kubelet has no log of a run that has not been."""
    if previous:
        if one.last is None:
            raise status.bad_request(f'previous terminated container "{one.name}" in pod "{pod}" not found')
    elif one.mode in (Mode.NEW, Mode.WAITING) and one.runs == 0:
        raise status.bad_request(f'container "{one.name}" in pod "{pod}" is waiting to start: {one.reason}')


def _lines(one: ContainerState, previous: bool) -> list[Line]:
    run = one.last if previous or one.mode is Mode.WAITING else one.end
    number = one.runs - 1 if previous and one.mode is not Mode.WAITING else one.runs
    if one.mode is Mode.RUNNING and not previous:
        return [(time(one.began), f"{time(one.began)} {one.name}: simulated run {one.runs} began")]
    if run is None:
        return []
    return [
        (time(run.began), f"{time(run.began)} {one.name}: simulated run {number} began"),
        (time(run.ended), f"{time(run.ended)} {one.name}: exit {run.code} ({run.reason})"),
    ]


def _truth(query: Mapping[str, Sequence[str]], name: str) -> bool:
    return (query.get(name) or [""])[0] in ("1", "t", "T", "true", "TRUE", "True")
