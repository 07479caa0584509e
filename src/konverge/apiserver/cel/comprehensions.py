"""The loops of `all`, `exists`, `map` and the other macros.

Like `&&`, `all` ignores an error if another element decides the result; like `||`, so does `exists`. Upstream: evalFold
(cel-go interpreter/interpretable.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from konverge.apiserver.cel.nodes import Fold
from konverge.apiserver.cel.values import CostExceeded, EvalError, Evaluate, no_overload

if TYPE_CHECKING:
    from konverge.apiserver.cel.planner import Planner

_PER_ITEM = 4
"""What an iteration costs besides its body: about the variable, the condition and the accumulator."""


def plan(planner: Planner, node: Fold) -> Evaluate:
    if node.macro == "bind":
        return _bind(planner, node)
    over = planner.plan(node.range)
    places = [planner.declare(node.var)] + ([planner.declare(node.var2)] if node.var2 else [])
    assert node.body is not None
    body = planner.plan(node.body)
    keep = planner.plan(node.filter) if node.filter is not None else None
    planner.forget(len(places))
    steps = _steps(over, places)
    if node.macro in ("map", "filter"):
        return _collect(steps, body, keep)
    if node.macro in ("transform_map", "transform_entry"):
        return _collect_map(steps, body, keep, places[0], entries=node.macro == "transform_entry")
    if node.macro == "exists_one":
        return _exactly_one(steps, body)
    return _decide(steps, body, decisive=node.macro == "exists")


def _bind(planner: Planner, node: Fold) -> Evaluate:
    value = planner.plan(node.init)
    place = planner.declare(node.accu)
    result = planner.plan(node.result)
    planner.forget(1)

    def evaluate(frame: list[Any]) -> Any:
        frame[place] = value(frame)
        return result(frame)

    return evaluate


Steps = Callable[[list[Any]], Iterable[None]]


def _steps(over: Evaluate, places: list[int]) -> Steps:
    """Sets the loop's variables, iteration by iteration."""
    first = places[0]
    second = places[1] if len(places) > 1 else 0

    def each(frame: list[Any]) -> Iterable[None]:
        container = over(frame)
        if isinstance(container, dict):
            pairs: Iterable[tuple[Any, Any]] = container.items()
        elif isinstance(container, list):
            pairs = enumerate(container) if second else ((item, None) for item in container)
        else:
            raise no_overload()
        for first_value, second_value in pairs:
            frame[0] -= _PER_ITEM
            if frame[0] < 0:
                raise CostExceeded
            frame[first] = first_value
            if second:
                frame[second] = second_value
            yield

    return each


def _decide(steps: Steps, body: Evaluate, *, decisive: bool) -> Evaluate:
    """all (decided by False) and exists (decided by True)."""

    def evaluate(frame: list[Any]) -> bool:
        failure: EvalError | None = None
        for _ in steps(frame):
            try:
                value = body(frame)
            except CostExceeded:
                raise
            except EvalError as error:
                failure = error
                continue
            if value is decisive:
                break
            if not isinstance(value, bool):
                failure = no_overload()
        else:
            if failure is not None:
                raise failure
            return not decisive
        return bool(decisive)

    return evaluate


def _exactly_one(steps: Steps, body: Evaluate) -> Evaluate:
    def evaluate(frame: list[Any]) -> bool:
        return bool(sum(_holds(body, frame) for _ in steps(frame)) == 1)

    return evaluate


def _holds(condition: Evaluate, frame: list[Any]) -> bool:
    value = condition(frame)
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def _collect(steps: Steps, body: Evaluate, keep: Evaluate | None) -> Evaluate:
    if keep is None:
        return lambda frame: [body(frame) for _ in steps(frame)]
    return lambda frame: [body(frame) for _ in steps(frame) if _holds(keep, frame)]


def _collect_map(steps: Steps, body: Evaluate, keep: Evaluate | None, key: int, *, entries: bool) -> Evaluate:
    def evaluate(frame: list[Any]) -> dict[Any, Any]:
        collected: dict[Any, Any] = {}
        for _ in steps(frame):
            if keep is not None and not _holds(keep, frame):
                continue
            made = body(frame)
            for name, value in made.items() if entries else ((frame[key], made),):
                if name in collected:
                    raise EvalError(f"insert failed: key {name} already exists")
                collected[name] = value
        return collected

    return evaluate
