"""Is a history of concurrent operations one that a single copy, taking one operation at a time, could have shown?

The algorithm is that of Wing and Gong with Lowe's memory of configurations that lead nowhere, as in Porcupine: choose
an operation that could have taken effect first, apply it to the model, go on with the rest, and go back where the model
cannot give the answer that was seen. An operation takes effect between its call and its return. One whose outcome is
not known (a connection that broke, a server error) may take effect at any time after its call, or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

NEVER = math.inf
"""The return of an operation whose outcome is not known."""

S = TypeVar("S", bound=Hashable)


class Operation(NamedTuple):
    """One operation: when it was called and answered, what was asked, what was answered (None if that is not known)."""

    called: float
    returned: float
    request: Any
    answer: Any


class TooManyOrders(Exception):
    """The search was given up: too many operations had no known outcome."""


class Verdict(NamedTuple):
    """`longest` is the longest order that could be explained: what is not in it is where to look."""

    linearizable: bool
    longest: tuple[Operation, ...]


def check(
    history: Sequence[Operation], initial: S, step: Callable[[S, Any, Any], S | None], *, most: int = 1_000_000
) -> Verdict:
    """`step(state, request, answer)` is the model: the next state, or None where the answer is impossible.

    Raises TooManyOrders after trying `most` configurations.

    >>> write, read = Operation(0, 1, ("write", 5), "ok"), Operation(2, 3, ("read",), 4)
    >>> def step(state, request, answer):
    ...     return request[1] if request[0] == "write" else state if answer == state else None
    >>> check([write, read], 0, step).linearizable
    False
    """
    operations = sorted(history, key=lambda operation: operation.called)
    needed = sum(1 << index for index, operation in enumerate(operations) if operation.returned != NEVER)
    seen: set[tuple[int, S]] = set()
    order: list[int] = []
    longest: tuple[int, ...] = ()
    # Each level of the search: operations that are still to be tried there, and the state and the set before them.
    levels = [(_first(operations, 0), initial, 0)]
    while levels:
        candidates, state, done = levels[-1]
        if not needed & ~done:
            return Verdict(True, tuple(operations[index] for index in order))
        if not candidates:
            levels.pop()
            if order:
                order.pop()
            continue
        index = candidates.pop()
        following = step(state, operations[index].request, operations[index].answer)
        taken = done | 1 << index
        if following is None or (taken, following) in seen:
            continue
        seen.add((taken, following))
        if len(seen) > most:
            raise TooManyOrders
        order.append(index)
        if len(order) > len(longest):
            longest = tuple(order)
        levels.append((_first(operations, taken), following, taken))
    return Verdict(False, tuple(operations[index] for index in longest))


def _first(operations: Sequence[Operation], done: int) -> list[int]:
    """Those that no operation left precedes; the one that was called first is the last, which is tried first."""
    candidates, earliest = [], NEVER
    left = ~done & (1 << len(operations)) - 1
    while left:
        index = (left & -left).bit_length() - 1
        left &= left - 1
        if operations[index].called > earliest:
            break
        candidates.append(index)
        earliest = min(earliest, operations[index].returned)
    candidates.reverse()
    # One whose outcome is not known is rarely needed: it is tried after all others.
    candidates.sort(key=lambda index: operations[index].returned == NEVER, reverse=True)
    return candidates
