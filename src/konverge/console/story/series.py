"""Plots of a story: replicas and readiness over time, how long reconciles took and how long they waited. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from konverge.console.story.entries import is_ready
from konverge.explain.reading import Obj, at, moment
from konverge.runtime.story.model import ReconcileStory

MOST = 500
"""Points of a plot."""
_AMOUNTS = (
    ("replicas wanted", ("spec", "replicas")),
    ("replicas wanted", ("status", "desiredNumberScheduled")),
    ("replicas ready", ("status", "readyReplicas")),
    ("replicas ready", ("status", "numberReady")),
)


class State(NamedTuple):
    """An object at a moment; None: it did not exist."""

    time: float
    uid: str
    obj: Obj | None


def series(
    root: Iterable[State], pods: Iterable[State], reconciles: Iterable[ReconcileStory], now: float
) -> list[dict[str, Any]]:
    """All plots that have something to show. States are in the order of time."""
    plots = [*_replicas(list(root), now), *_pods(list(pods), now)]
    done = sorted(reconciles, key=lambda story: story.began)
    points = [(moment({"at": story.began}, "at"), story) for story in done]
    plots.append(_plot("reconcile duration", "s", [(then, story.seconds) for then, story in points if then]))
    plots.append(_plot("time in queue", "s", [(then, story.waited) for then, story in points if then]))
    return [plot for plot in plots if plot["points"]]


def _replicas(states: list[State], now: float) -> list[dict[str, Any]]:
    plots: dict[str, list[tuple[float, float]]] = {}
    for name, path in _AMOUNTS:
        counts = [(state.time, _number(state.obj, *path)) for state in states]
        known = [(then, count) for then, count in counts if count is not None]
        if known:
            plots[name] = _steps([*known, (now, known[-1][1])])
    if "replicas wanted" in plots and "replicas ready" not in plots:
        del plots["replicas wanted"]
    return [_plot(name, "", points) for name, points in plots.items()]


def _pods(states: list[State], now: float) -> list[dict[str, Any]]:
    ready: dict[str, bool] = {}
    points: list[tuple[float, float]] = []
    for state in states:
        ready[state.uid] = state.obj is not None and is_ready(state.obj)
        points.append((state.time, float(sum(ready.values()))))
    return [_plot("pods ready", "", _steps([*points, (now, points[-1][1])]))] if points else []


def _number(obj: Obj | None, *path: str) -> float | None:
    value = at(obj, *path)
    if path[-1] == "readyReplicas" and value is None and at(obj, "status", "replicas") is not None:
        return 0.0  # such counts are left out where they are zero
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _steps(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without the points between two others of the same value."""
    inner = zip(points, points[1:], points[2:], strict=False)
    kept = [here for before, here, after in inner if not before[1] == here[1] == after[1]]
    return [points[0], *kept, points[-1]] if len(points) > 1 else points


def _plot(name: str, unit: str, points: list[tuple[float, float]]) -> dict[str, Any]:
    return {"name": name, "unit": unit, "points": [[round(then, 3), value] for then, value in points[-MOST:]]}
