"""How deep expressions may be nested, and room on the stack for that depth.

An expression within the limits still needs more of Python's stack than a program has by default: a pair of parentheses
alone passes through every rule of the grammar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from konverge.apiserver.cel.nodes import Call, Node, children

LIMIT = 250  # upstream: maxRecursionDepth (cel-go parser/parser.go)
SHALLOW = 40
"""Trees up to this depth are evaluated within the ordinary stack."""
_FRAMES = 6000
"""Calls that the deepest expression takes: measured, with room to spare."""


@contextmanager
def room() -> Iterator[None]:
    """Enough stack for every expression within the limits."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


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
