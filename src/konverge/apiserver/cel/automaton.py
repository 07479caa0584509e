"""Matching in linear time.

Python's `re` backtracks: on `^(a+)+$` it takes twice as long for every further letter of the text, and a server would
stand still. RE2 promises not to, and rules and schemas are written for it. Patterns that could blow up are run here
instead: as a set of states that all move with each character. Whether there is a match is answered by states that
remember their moves; where it is, by threads in order of preference.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from konverge.apiserver.cel.charclass import Ranges
from konverge.apiserver.cel.re2 import Node

BEGIN, END, LINE_BEGIN, LINE_END, WORD, NOT_WORD = (1 << bit for bit in range(6))
_ASSERTIONS = {
    "begin": BEGIN,
    "end": END,
    "line_begin": LINE_BEGIN,
    "line_end": LINE_END,
    "word": WORD,
    "not_word": NOT_WORD,
}
_MATCH = -1
_REMEMBERED = 2000
Span = tuple[int, int]


@dataclass(slots=True)
class _Step:
    """One instruction: `next` holds where to go on, in order of preference."""

    next: tuple[int, ...] = ()
    ranges: Ranges | None = None
    fold: bool = False
    holds: int = 0

    def takes(self, char: str) -> bool:
        if not self.fold:
            return _within(char, self.ranges or ())
        return any(_within(form, self.ranges or ()) for form in {char, char.lower(), char.upper()} if len(form) == 1)


def _within(char: str, ranges: Ranges) -> bool:
    code = ord(char)
    at = bisect_right(ranges, (code, 0x110000)) - 1
    return at >= 0 and any(low <= code <= high for low, high in ranges[: at + 1])


@dataclass(slots=True, eq=False)
class _State:
    """A set of instructions that wait for a character, and where each character led so far."""

    waiting: tuple[int, ...]
    matched: bool
    moves: dict[tuple[str, int], _State] = field(default_factory=dict)


class Automaton:
    """A pattern as instructions."""

    def __init__(self, tree: Node) -> None:
        self._steps: list[_Step] = []
        self._uses = 0
        self._start = self._emit(tree, _MATCH)
        self._interned: dict[tuple[tuple[int, ...], bool], _State] = {}

    # --- building, from the end to the beginning

    def _add(self, step: _Step) -> int:
        self._steps.append(step)
        return len(self._steps) - 1

    def _emit(self, node: Node, after: int) -> int:
        if node.op in _ASSERTIONS:
            self._uses |= _ASSERTIONS[node.op]
            return self._add(_Step((after,), holds=_ASSERTIONS[node.op]))
        if node.op == "class":
            return self._add(_Step((after,), node.ranges, node.fold))
        if node.op == "alt":
            return self._add(_Step(tuple(self._emit(part, after) for part in node.parts)))
        if node.op == "rep":
            return self._repeat(node, after)
        for part in reversed(node.parts):
            after = self._emit(part, after)
        return after

    def _repeat(self, node: Node, after: int) -> int:
        part, at = node.parts[0], after
        if node.high < 0:
            at = self._add(_Step())
            self._steps[at].next = self._choice(self._emit(part, at), after, node.greedy)
        for _ in range(max(node.high - node.low, 0)):
            at = self._add(_Step(self._choice(self._emit(part, at), after, node.greedy)))
        for _ in range(node.low):
            at = self._emit(part, at)
        return at

    @staticmethod
    def _choice(more: int, after: int, greedy: bool) -> tuple[int, int]:
        return (more, after) if greedy else (after, more)

    # --- running

    def _context(self, text: str, at: int) -> int:
        """What is true between two characters, as far as the pattern asks."""
        last = len(text)
        found = (BEGIN if at == 0 else 0) | (END if at == last else 0)
        if self._uses & ~(BEGIN | END):
            before, behind = text[at - 1] if at else "\n", text[at] if at < last else "\n"
            found |= (LINE_BEGIN if before == "\n" else 0) | (LINE_END if behind == "\n" else 0)
            found |= WORD if _is_word(before) != _is_word(behind) else NOT_WORD
        return found & self._uses

    def _closure(self, starts: Iterable[int], context: int, seen: set[int]) -> list[int]:
        """All instructions that can be reached without a character, the preferred ones first."""
        found: list[int] = []
        pending = list(starts)[::-1]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            step = None if at == _MATCH else self._steps[at]
            if step is None or step.ranges is not None:
                found.append(at)
            elif step.holds & context == step.holds:
                pending.extend(reversed(step.next))
        return found

    def _state(self, starts: Iterable[int], context: int) -> _State:
        reached = self._closure((*starts, self._start), context, set())
        key = tuple(sorted(at for at in reached if at != _MATCH)), _MATCH in reached
        if len(self._interned) > _REMEMBERED:
            self._interned.clear()
        return self._interned.setdefault(key, _State(*key))

    def search(self, text: str) -> bool:
        """Whether the pattern is anywhere in the text."""
        state = self._state((), self._context(text, 0))
        plain, last = not self._uses & ~(BEGIN | END), len(text)
        for at, char in enumerate(text, 1):
            if state.matched:
                return True
            context = 0 if plain and at < last else self._context(text, at)
            known = state.moves.get((char, context))
            if known is None:
                moved = [self._steps[one].next[0] for one in state.waiting if self._steps[one].takes(char)]
                known = state.moves[char, context] = self._state(moved, context)
            state = known
        return state.matched

    def find(self, text: str, begin: int) -> Span | None:
        """The first match from a place on, as a backtracking search would find it."""
        threads: list[tuple[int, int]] = []
        best: Span | None = None
        for at in range(begin, len(text) + 1):
            if best is None:
                threads.append((self._start, at))
            waiting, ended = self._advance(threads, self._context(text, at))
            if ended is not None:
                best = ended, at
            if at == len(text) or (best is not None and not waiting):
                break
            char = text[at]
            threads = [(self._steps[one].next[0], start) for one, start in waiting if self._steps[one].takes(char)]
        return best

    def _advance(self, threads: list[tuple[int, int]], context: int) -> tuple[list[tuple[int, int]], int | None]:
        """The threads that wait for a character; those behind one that has ended are given up."""
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()
        for at, start in threads:
            for one in self._closure((at,), context, seen):
                if one == _MATCH:
                    return waiting, start
                waiting.append((one, start))
        return waiting, None


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
