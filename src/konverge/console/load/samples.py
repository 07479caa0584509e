"""A bounded past of a few numbers, and the lines of plots that are made of it. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

EVERY = 5.0
"""Seconds between two samples."""
KEPT = 360
"""Samples: half an hour."""
LINES = 6
"""Lines of a plot; the others are added up, or left out where a sum means nothing."""
OTHER = "other"


class Queue(NamedTuple):
    """The queue of a controller."""

    controller: str
    kind: str = ""
    """Of what it reconciles, such as `WebApp.apps.example.com`; empty where that is not known."""


class Reading(NamedTuple):
    """The numbers of a moment; requests are totals that only grow."""

    queues: Mapping[Queue, int]
    """Keys that wait."""
    verbs: Mapping[str, float]
    clients: Mapping[str, float]


class Sample(NamedTuple):
    """Seconds since the epoch, and what was so then; requests are per second since the sample before."""

    time: float
    queues: Mapping[Queue, int]
    verbs: Mapping[str, float]
    clients: Mapping[str, float]


class Samples:
    """The latest samples."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._last: tuple[float, Reading] | None = None
        """When numbers were read last, by the clock that never goes back."""

    def add(self, moment: float, monotonic: float, reading: Reading) -> None:
        """The first reading only tells where totals begin."""
        last, self._last = self._last, (monotonic, reading)
        if last is None or monotonic <= last[0]:
            return
        seconds = monotonic - last[0]
        verbs, clients = (
            _rates(last[1].verbs, reading.verbs, seconds),
            _rates(last[1].clients, reading.clients, seconds),
        )
        self._samples.append(Sample(moment, reading.queues, verbs, clients))

    def plots(self, kind: str = "") -> dict[str, Any]:
        """All plots with something to show; with a kind, of the queues of its controllers alone."""
        samples = list(self._samples)
        plots = [_plot("queue", samples, lambda sample: _depths(sample, kind), whole=bool(kind))]
        if not kind:
            plots.append(_plot("verbs", samples, lambda sample: sample.verbs, summed=True))
            plots.append(_plot("clients", samples, lambda sample: sample.clients, summed=True))
        times = [round(sample.time, 1) for sample in samples]
        return {"times": times, "every": EVERY, "plots": [plot for plot in plots if plot["lines"]]}


def _rates(old: Mapping[str, float], new: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Per second. A total that is smaller than before began again from nothing."""
    begun = {name: old.get(name, 0) if total >= old.get(name, 0) else 0 for name, total in new.items()}
    return {name: round((total - begun[name]) / seconds, 2) for name, total in new.items()}


def _depths(sample: Sample, kind: str) -> dict[str, float]:
    """By controller. One whose kind is not known belongs to that which it is called after."""
    name = kind.partition(".")[0].lower()
    return {
        queue.controller: float(depth)
        for queue, depth in sample.queues.items()
        if not kind or queue.kind == kind or (not queue.kind and queue.controller == name)
    }


def _plot(
    name: str,
    samples: list[Sample],
    numbers: Callable[[Sample], Mapping[str, float]],
    *,
    whole: bool = False,
    summed: bool = False,
) -> dict[str, Any]:
    """`whole`: also lines that are zero throughout; `summed`: the rest as one line."""
    columns = [numbers(sample) for sample in samples]
    names = {line for column in columns for line in column}
    peaks = {line: max(column.get(line, 0.0) for column in columns) for line in names}
    chosen = names if whole else {line for line in names if peaks[line]}
    ranked = sorted(chosen, key=lambda line: (line == OTHER, -peaks[line], line))
    shown, rest = ranked[:LINES], ranked[LINES:]
    absent = 0.0 if summed else None  # a verb that was not counted yet was not used; a queue was not there
    lines = [{"name": line, "values": [column.get(line, absent) for column in columns]} for line in shown]
    if rest and summed:
        sums = [round(sum(column.get(line, 0.0) for line in rest), 2) for column in columns]
        lines.append({"name": OTHER, "values": sums})
    return {"name": name, "lines": lines}
