"""Compiled patterns: RE2 syntax outside; inside Python's `re`, or an automaton where that could take forever."""

from __future__ import annotations

import re
from functools import lru_cache

from konverge.apiserver.cel.automaton import Automaton, Span
from konverge.apiserver.cel.re2 import Node, parse

_STEPS = 5_000_000

_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\Z",
    "line_begin": r"(?m:^)",
    "line_end": r"(?m:$)",
    "word": r"(?a:\b)",
    "not_word": r"(?!(?a:\b))",  # Python has no \B in an empty text, Go has
}


class Pattern:
    """A pattern that can be searched for."""

    __slots__ = ("_automaton", "_degree", "_expression", "_nested", "_tree")

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._expression = re.compile(_write(tree))
        self._nested = _nests(tree)
        self._degree = 1 + _loops(tree)
        self._automaton: Automaton | None = None

    def matches(self, text: str) -> bool:
        """Whether it is anywhere in the text."""
        if self._blows_up(text):
            return self._linear().search(text)
        return self._expression.search(text) is not None

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The matches from left to right; an empty one right behind another does not count."""
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and len(found) != limit:
            span = self._find(text, at)
            if span is None:
                break
            if span[1] > at or span[0] != last:
                found.append(text[span[0] : span[1]])
            at = span[1] if span[1] > at else at + 1
            last = span[1]
        return found

    def _find(self, text: str, at: int) -> Span | None:
        if self._blows_up(text):
            return self._linear().find(text, at)
        found = self._expression.search(text, at)
        return None if found is None else found.span()

    def _blows_up(self, text: str) -> bool:
        """Whether backtracking could take more steps than anyone wants to wait for."""
        return self._nested or len(text) ** self._degree > _STEPS

    def _linear(self) -> Automaton:
        if self._automaton is None:
            self._automaton = Automaton(self._tree)
        return self._automaton


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Raises RegexError with Go's text when Go would refuse it."""
    return Pattern(parse(pattern))


def _repeats(node: Node) -> bool:
    return node.op == "rep" and node.low != node.high


def _nests(node: Node, within: bool = False) -> bool:
    """Whether a repetition has choices inside: the ways through it multiply with each round."""
    if within and (_repeats(node) or node.op == "alt"):
        return True
    within = within or (node.op == "rep" and node.high not in (0, 1))
    return any(_nests(part, within) for part in node.parts)


def _loops(node: Node) -> int:
    return (1 if _repeats(node) and node.high != 1 else 0) + sum(_loops(part) for part in node.parts)


def _write(node: Node) -> str:
    if node.op in _ASSERTIONS:
        return _ASSERTIONS[node.op]
    if node.op == "class":
        return _class(node)
    if node.op == "cat":
        return "".join(_write(part) for part in node.parts)
    if node.op == "alt":
        return "(?:" + "|".join(_write(part) for part in node.parts) + ")"
    if node.op == "group":
        opening = f"(?P<{node.name}>" if node.name else "(" if node.capture else "(?:"
        return f"{opening}{_write(node.parts[0])})"
    return _repeat(node)


def _repeat(node: Node) -> str:
    bounds = {(0, -1): "*", (1, -1): "+", (0, 1): "?"}.get((node.low, node.high))
    if bounds is None:
        bounds = f"{{{node.low},{'' if node.high < 0 else node.high}}}"
    return f"(?:{_write(node.parts[0])}){bounds}{'' if node.greedy else '?'}"


def _class(node: Node) -> str:
    if not node.ranges:
        return r"(?!)"
    body = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in node.ranges)
    single = len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]
    text = body if single else f"[{body}]"
    return f"(?i:{text})" if node.fold else text


def _char(code: int) -> str:
    char = chr(code)
    if char.isalnum() and code < 0x80:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
