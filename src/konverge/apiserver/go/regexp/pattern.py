"""Compiled patterns: run by Python's `re` where that is certain to be quick, and by an automaton everywhere else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache

from konverge.apiserver import aside
from konverge.apiserver.go.regexp.automaton import Automaton, Span
from konverge.apiserver.go.regexp.classes import Ranges, invert
from konverge.apiserver.go.regexp.finder import Finder
from konverge.apiserver.go.regexp.syntax import Node, RegexError, parse

_STEPS = 64
"""Backtracking may take so many steps for a character, by the worst estimate: a step is some 10 ns, the automaton needs
some 60 ns for a character (and a microsecond to begin), so that a wrong estimate costs a factor of ten at most."""
_DEEPEST = 50
"""`re` compiles by recursion, several frames for each level."""
_HEAVIEST = 300
"""`re` takes some 8 µs to compile a range of characters: 5 ms for the 650 ranges of all letters."""
_LARGEST = 20_000
"""An automaton of more instructions is refused, which Go does not do below 3.3 million: it would need 50 MB."""

_AT_ONCE = 8
"""Instructions that move together with a character."""
_BUILD = 20
"""How many moves of an instruction take as long as making it."""

_ASSERTIONS = {
    "empty": "",
    "begin": r"\A",
    "end": r"\Z",
    "line_begin": r"(?m:^)",
    "line_end": r"(?m:$)",
    "word": r"(?a:\b)",
    "not_word": r"(?!(?a:\b))",  # Python has no \B in an empty text, Go has
}


class Pattern:
    """A pattern that can be searched for."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._backtracks = not tree.nests and tree.height <= _DEEPEST and tree.weight <= _HEAVIEST
        anchored = (tree.parts[0] if tree.op == "cat" else tree).op == "begin"
        self._degree = tree.loops + (0 if anchored else 1)
        self._written: re.Pattern[str] | None = None
        self._built: Automaton | None = None

    def matches(self, text: str) -> bool:
        """Whether it is anywhere in the text."""
        if self._is_quick(text):
            return self._expression.search(text) is not None
        aside.expect(_BUILD * self._tree.size if self._built is None else 0)
        aside.expect(self._tree.size * len(text) // _AT_ONCE)
        return self._automaton.search(text)

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The matches from left to right; an empty one right behind another does not count."""
        matches: list[str] = []
        find = self._finder(text)
        at, last = 0, -1
        while at <= len(text) and len(matches) != limit:
            span = find(at)
            if span is None:
                break
            if span[1] > at or span[0] != last:
                matches.append(text[span[0] : span[1]])
            at = span[1] if span[1] > at else at + 1
            last = span[1]
        return matches

    def _finder(self, text: str) -> Callable[[int], Span | None]:
        """Finds the first match from a place on."""
        if self._is_quick(text):
            search = self._expression.search
            return lambda at: None if (match := search(text, at)) is None else match.span()
        if not self.matches(text):  # that is one pass, and often all
            return lambda at: None
        aside.expect(self._tree.size * len(text))
        return Finder(self._automaton, text).find

    def _is_quick(self, text: str) -> bool:
        """Whether backtracking cannot take much longer than the text is long."""
        length = len(text)
        return self._backtracks and self._tree.choices * length**self._degree <= _STEPS * (length + 16)

    @property
    def _expression(self) -> re.Pattern[str]:
        if self._written is None:
            self._written = re.compile(_write(self._tree))
        return self._written

    @property
    def _automaton(self) -> Automaton:
        if self._built is None:
            self._built = Automaton(self._tree)
        return self._built


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Raises RegexError with Go's text when Go would refuse it."""
    tree = parse(pattern)
    if tree.size > _LARGEST:
        raise RegexError("expression too large", pattern)
    return Pattern(tree)


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
        return f"(?:{_write(node.parts[0])})"
    bounds = {(0, -1): "*", (1, -1): "+", (0, 1): "?"}.get((node.low, node.high))
    if bounds is None:
        bounds = f"{{{node.low},{'' if node.high < 0 else node.high}}}"
    return f"(?:{_write(node.parts[0])}){bounds}{'' if node.greedy else '?'}"


def _class(node: Node) -> str:
    if not node.ranges:
        return r"(?!)"
    if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return _char(node.ranges[0][0])
    others = invert(node.ranges)
    negated = _cost(others) < _cost(node.ranges)
    ranges = others if negated else node.ranges
    body = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges)
    return f"[{'^' if negated else ''}{body}]" if ranges else r"[\s\S]"


def _cost(ranges: Ranges) -> tuple[int, bool]:
    """`re` takes 16 ms to compile a range up to the last code point, and some µs for what it leaves out."""
    return len(ranges), bool(ranges) and ranges[-1][1] == sys.maxunicode


def _char(code: int) -> str:
    char = chr(code)
    if char.isalnum() and code < 0x80:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
