"""Where the matches in a text are, all of them in linear time.

A search that tries from one place after the other may look at the rest of the text each time, to find that `a.*b|a` is
only an `a`. So the text is first read backwards, once: behind each character the instructions are known from which a
match can still be reached. Forwards, the first of them in the order of preference is the right one, and no step is
taken back.

The sets are kept for a block of the text only, and for the begin of each block: there may be many, and of a thousand
bits each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.apiserver.go.regexp.automaton import Automaton, Span

_BLOCK = 1_024
_MATCH = 0
_REMEMBERED = 10_000


class Finder:
    """The matches in one text; asked from left to right."""

    def __init__(self, automaton: Automaton, text: str) -> None:
        self._automaton = automaton
        self._text = text
        self._before = _Backwards(automaton)
        self._blocks = self._ends_of_blocks()
        self._begin = len(text) + 1
        """Where the present block begins."""
        self._useful: list[int] = []
        self._choices: dict[tuple[int, int, int], int] = {}

    def find(self, begin: int) -> Span | None:
        """The first match from a place on, as a backtracking search would find it."""
        automaton, text = self._automaton, self._text
        for start in range(begin, len(text) + 1):
            if automaton.reach(automaton.context(text, start))[automaton.start] & self._at(start):
                return start, self._end(start)
        return None

    def _end(self, start: int) -> int:
        at, here = start, self._automaton.start
        while True:
            here = self._chosen(here, at)
            if here == _MATCH:
                return at
            here = self._automaton.steps[here].next[0]
            at += 1

    def _chosen(self, here: int, at: int) -> int:
        """The instruction that waits for the character at a place, of all that are reached without one."""
        key = here, self._at(at), self._automaton.context(self._text, at)
        chosen = self._choices.get(key)
        if chosen is None:
            if len(self._choices) >= _REMEMBERED:
                self._choices.clear()
            chosen = self._choices[key] = self._choose(*key)
        return chosen

    def _choose(self, here: int, useful: int, context: int) -> int:
        steps, reach = self._automaton.steps, self._automaton.reach(context)
        seen: set[int] = set()
        pending = [here]
        while True:
            here = pending.pop()
            if here in seen or not reach[here] & useful:
                continue
            seen.add(here)
            step = steps[here]
            if step.bit:
                return here
            pending.extend(reversed(step.next))

    def _at(self, place: int) -> int:
        """The bits of the instructions that lead to a match from a place on, and that of the match itself."""
        if not self._begin <= place < self._begin + len(self._useful):
            number = place // _BLOCK
            self._begin = number * _BLOCK
            self._useful = list(self._backwards(self._begin, self._blocks[number]))
        return self._useful[place - self._begin]

    def _ends_of_blocks(self) -> list[tuple[int, int]]:
        """For each block its last place, and the set there."""
        place = len(self._text)
        ends = [(place, 1)]
        while place >= _BLOCK:
            begin = place // _BLOCK * _BLOCK
            useful = self._backwards(begin, ends[-1])[0]
            place = begin - 1
            ends.append((place, self._step(useful, place)))
        return ends[::-1]

    def _backwards(self, begin: int, end: tuple[int, int]) -> list[int]:
        """The sets from a place up to the end of its block."""
        place, useful = end
        sets = [useful]
        while place > begin:
            place -= 1
            useful = self._step(useful, place)
            sets.append(useful)
        return sets[::-1]

    def _step(self, useful: int, place: int) -> int:
        return self._before(useful, self._text[place], self._automaton.context(self._text, place + 1))


class _Backwards:
    """The step from the set behind a character to the one before it."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._known: dict[tuple[int, str, int], int] = {}
        self._tables: dict[int, Callable[[int], int]] = {}

    def __call__(self, useful: int, char: str, context: int) -> int:
        key = useful, char, context
        before = self._known.get(key)
        if before is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            lead = self._tables.get(context)
            if lead is None:
                lead = self._tables[context] = self._leading(context)
            before = self._known[key] = lead(useful) & self._automaton.takers(char) | 1
        return before

    def _leading(self, context: int) -> Callable[[int], int]:
        """The instructions behind which one of a set is reached; looked up eight bits at a time."""
        automaton = self._automaton
        reach = automaton.reach(context)
        sources = [0] * len(automaton.waiting)
        for at in automaton.waiting[1:]:
            step = automaton.steps[at]
            reached = reach[step.next[0]]
            while reached:
                lowest = reached & -reached
                sources[lowest.bit_length() - 1] |= step.bit
                reached ^= lowest
        tables: list[dict[int, int]] = [{0: 0} for _ in range(0, len(sources), 8)]

        def lead(useful: int) -> int:
            leading = 0
            for number, eight in enumerate(useful.to_bytes(len(tables), "little")):
                known = tables[number].get(eight)
                if known is None:
                    known = 0
                    for bit in range(8):
                        if eight >> bit & 1:
                            known |= sources[number * 8 + bit]
                    tables[number][eight] = known
                leading |= known
            return leading

        return lead
