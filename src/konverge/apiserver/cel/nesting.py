"""How deep expressions may be nested, and room on the stack for that depth.

An expression within the limits still needs more of Python's stack than a program has by default: a pair of parentheses
alone passes through every rule of the grammar.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from threading import Lock

from konverge.apiserver.cel.nodes import Call, Node, children

LIMIT = 250  # upstream: maxRecursionDepth (cel-go parser/parser.go)
SHALLOW = 40
"""Trees up to this depth are evaluated within the ordinary stack."""
_FRAMES = 6000
"""Calls that the deepest expression takes: measured, with room to spare."""


class _Room:
    """The limit of the stack is one for all threads: it is raised while any of them needs it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(self._before + _FRAMES)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setrecursionlimit(self._before)


_room = _Room()


def room() -> AbstractContextManager[None]:
    """Enough stack for every expression within the limits."""
    return _room


def nesting(tree: Node) -> int:
    """The depth of a tree."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = list({id(child): child for node in level for child in children(node)}.values())
    return deepest


# upstream: logicManager (cel-go parser/helper.go)
def balanced(function: str, terms: list[Node], operators: list[int]) -> Node:
    """Long chains become balanced trees, so that their depth stays small; the middle operator is the root."""

    def build(low: int, high: int) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else build(low, middle - 1)
        right = terms[middle + 1] if middle == high else build(middle + 1, high)
        return Call(offset=operators[middle], function=function, args=[left, right])

    return build(0, len(operators) - 1)
