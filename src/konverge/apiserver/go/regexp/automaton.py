"""Matching in linear time.

Python's `re` backtracks: on `^(a+)+$` it takes twice as long for every further letter of the text, and a server would
stand still. Go promises not to, and rules and schemas are written for it. Patterns that could take that long are run
here instead, as a set of instructions that all move with each character.

Whether there is a match is answered with sets as bits of an integer: one bit for each instruction that waits for a
character (bit 0: the match). Where a set goes on is looked up eight bits at a time, and sets remember their moves, so
that text of a usual pattern costs one look-up for a character, and the worst pattern one for eight instructions and a
character. Where a match is, is answered by `finder.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from typing import Any

import msgspec

from konverge.apiserver.go.regexp.classes import Ranges
from konverge.apiserver.go.regexp.syntax import Node

BEGIN, END, LINE_BEGIN, LINE_END, WORD, NOT_WORD = (1 << bit for bit in range(6))
_ASSERTIONS = {
    "begin": BEGIN,
    "end": END,
    "line_begin": LINE_BEGIN,
    "line_end": LINE_END,
    "word": WORD,
    "not_word": NOT_WORD,
}
_MATCH = 0
_REMEMBERED = 10_000
"""Moves that an automaton remembers before it forgets them all and begins again."""
Span = tuple[int, int]
_Emission = Generator[tuple[Node, int], int, int]


class _Step(msgspec.Struct):
    """One instruction: `next` holds where to go on, in order of preference."""

    next: tuple[int, ...] = ()
    bit: int = 0
    """Not 0 where the instruction waits for a character."""
    holds: int = 0


class _State(dict[Any, "_State"]):
    """A set of waiting instructions, and where each character led so far.

    Keys are characters, or characters and what is true behind them."""

    __slots__ = ("automaton", "settled", "waiting")

    def __init__(self, automaton: Automaton, waiting: int) -> None:
        super().__init__()
        self.automaton = automaton
        self.waiting = waiting
        self.settled = waiting & 1 or (not waiting and automaton.is_anchored)
        """No further character can change whether there is a match."""

    def __missing__(self, key: str | tuple[str, int]) -> _State:
        char, context = key if isinstance(key, tuple) else (key, 0)
        state = self[key] = self.automaton.move(self.waiting, char, context)
        return state


class Automaton:
    """A pattern as instructions."""

    def __init__(self, tree: Node) -> None:
        self.steps = [_Step(bit=1)]
        self.waiting = [_MATCH]
        """The instruction behind each bit."""
        self._classes: dict[int, tuple[Ranges, int]] = {}
        self._loops: list[tuple[int, int, int]] = []
        """Of each loop the last instruction of its body, the one that may go back, and where to; inner loops first."""
        self._uses = 0
        self.start = self._emit(tree)
        self._bounds, self._masks = self._characters()
        self._reached: dict[int, list[int]] = {}
        self._tables: dict[int, list[dict[int, int]]] = {}
        self._states: dict[int, _State] = {}
        self._moves = 0
        self._has_only_ends = not self._uses & ~(BEGIN | END)
        self.is_anchored = self._has_only_ends and not self.reach(END)[self.start]

    # --- building, from the end to the beginning

    def _emit(self, tree: Node) -> int:
        """Where the tree begins. The stack is a list, as a tree may be deeper than Python's stack."""
        pending = [self._emission(tree, _MATCH)]
        entry: int | None = None
        while pending:
            try:
                node, after = pending[-1].send(entry)  # type: ignore[arg-type]
            except StopIteration as stop:
                pending.pop()
                entry = stop.value
            else:
                pending.append(self._emission(node, after))
                entry = None
        assert entry is not None
        return entry

    def _add(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _emission(self, node: Node, after: int) -> _Emission:
        if node.op == "class":
            return self._add_class(node.ranges, after)
        if node.op in _ASSERTIONS:
            self._uses |= _ASSERTIONS[node.op]
            return self._add(_Step((after,), holds=_ASSERTIONS[node.op]))
        if node.op == "alt":
            entries: tuple[int, ...] = ()
            for part in node.parts:
                entries = *entries, (yield part, after)
            return self._add(_Step(entries))
        if node.op == "rep":
            return (yield from self._repetition(node, after))
        for part in reversed(node.parts):
            after = yield part, after
        return after

    def _add_class(self, ranges: Ranges, after: int) -> int:
        at = self._add(_Step((after,), bit=1 << len(self.waiting)))
        self.waiting.append(at)
        _, bits = self._classes.get(id(ranges), (ranges, 0))
        self._classes[id(ranges)] = ranges, bits | self.steps[at].bit
        return at

    def _repetition(self, node: Node, after: int) -> _Emission:
        part, at = node.parts[0], after

        def choice(more: int) -> tuple[int, int]:
            return (more, after) if node.greedy else (after, more)

        copies = node.low
        if node.high < 0:
            tail = self._add(_Step())
            at = entry = yield part, tail
            self.steps[tail].next = choice(entry)
            self._loops.append((len(self.steps) - 1, tail, entry))
            if copies == 0:  # upstream: star in regexp/syntax/compile.go
                at = self._add(_Step(choice(entry))) if part.nullable else tail
            copies -= 1
        for _ in range(max(node.high - node.low, 0)):
            entry = yield part, at
            at = self._add(_Step(choice(entry)))
        for _ in range(copies):
            at = yield part, at
        return at

    def _characters(self) -> tuple[list[int], list[int]]:
        """Where another set of instructions takes the characters, and which set."""
        changes: dict[int, int] = {0: 0}
        for ranges, bits in self._classes.values():
            for low, high in ranges:
                changes[low] = changes.get(low, 0) ^ bits
                changes[high + 1] = changes.get(high + 1, 0) ^ bits
        bounds = sorted(changes)
        masks: list[int] = []
        takers = 0
        for bound in bounds:
            takers ^= changes[bound]
            masks.append(takers)
        return bounds, masks

    def takers(self, char: str) -> int:
        """The instructions that take a character."""
        return self._masks[bisect_right(self._bounds, ord(char)) - 1]

    def reach(self, context: int) -> list[int]:
        """For each instruction the bits that can be reached from it without a character.

        Instructions lead to earlier ones, except those that go back in a loop. The first pass finds what each loop
        begins with when its body is done; the second one is then complete.
        """
        known = self._reached.get(context)
        if known is not None:
            return known
        reach = [0] * len(self.steps)
        for _ in range(2):
            loops = iter([*self._loops, (-1, 0, 0)])
            end, tail, entry = next(loops)
            for at, step in enumerate(self.steps):
                if step.bit:
                    reach[at] = step.bit
                elif step.holds & context == step.holds:
                    bits = 0
                    for to in step.next:
                        bits |= reach[to]
                    reach[at] = bits
                while at == end:
                    reach[tail] |= reach[entry]
                    end, tail, entry = next(loops)
        self._reached[context] = reach
        return reach

    # --- running

    def context(self, text: str, at: int) -> int:
        """What is true between two characters, as far as the pattern asks."""
        last = len(text)
        context = (BEGIN if at == 0 else 0) | (END if at == last else 0)
        if not self._has_only_ends:
            before, behind = text[at - 1] if at else "\n", text[at] if at < last else "\n"
            context |= (LINE_BEGIN if before == "\n" else 0) | (LINE_END if behind == "\n" else 0)
            context |= WORD if _is_word(before) != _is_word(behind) else NOT_WORD
        return context & self._uses

    def move(self, waiting: int, char: str, context: int) -> _State:
        """The state behind a character, in which a match may also begin."""
        reach = self.reach(context)
        tables = self._tables.get(context)
        if tables is None:
            tables = self._tables[context] = [{} for _ in range(0, len(self.waiting), 8)]
        moved = waiting & self.takers(char)
        bits = reach[self.start]
        for number, (table, eight) in enumerate(zip(tables, moved.to_bytes(len(tables), "little"), strict=True)):
            if eight:
                known = table.get(eight)
                if known is None:
                    known = 0
                    for bit in range(8):
                        if eight >> bit & 1:
                            known |= reach[self.steps[self.waiting[number * 8 + bit]].next[0]]
                    table[eight] = known
                bits |= known
        return self._state(bits)

    def _state(self, waiting: int) -> _State:
        self._moves += 1
        if self._moves > _REMEMBERED:
            self._states.clear()
            self._moves = 0
        state = self._states.get(waiting)
        if state is None:
            state = self._states[waiting] = _State(self, waiting)
        return state

    def search(self, text: str) -> bool:
        """Whether the pattern is anywhere in the text."""
        state = self._state(self.reach(self.context(text, 0))[self.start])
        if self._has_only_ends:
            for char in text[:-1]:
                if state.settled:
                    return bool(state.waiting & 1)
                state = state[char]
            if text and not state.waiting & 1:
                state = state[text[-1], self.context(text, len(text))]
        else:
            for at, char in enumerate(text, 1):
                if state.waiting & 1:
                    break
                state = state[char, self.context(text, at)]
        return bool(state.waiting & 1)


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
