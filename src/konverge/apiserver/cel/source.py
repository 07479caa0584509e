"""The text of an expression, positions in it, and errors that point at them.

The form of an error is that of cel-go (common/error.go), which the API server passes on:

    ERROR: <input>:1:5: undefined field 'b'
     | self.b == 1
     | ....^
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

_LONGEST_LINE = 16384  # upstream: maxSnippetLength
_MOST_PROBLEMS = 100  # upstream: maxErrorsToReport (common/errors.go)


class Source:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def locate(self, offset: int) -> tuple[int, int]:
        """(line, column), both counted from 1 and 0."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]


class Problem(msgspec.Struct, frozen=True):
    """One error. A negative offset means that it has no position."""

    offset: int
    message: str


class CompileError(Exception):
    """All errors of an expression, in the order of the text."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.source = source
        self.problems = sorted(problems, key=lambda problem: problem.offset)
        super().__init__("\n".join(_display(source, problem) for problem in self.problems[:_MOST_PROBLEMS]))


def _display(source: Source, problem: Problem) -> str:
    if problem.offset < 0:
        return f"ERROR: <input>:-1:0: {problem.message}"
    line, column = source.locate(problem.offset)
    empty = not source.text
    text = f"ERROR: <input>:{line}:{0 if empty else column + 1}: {problem.message}"
    snippet = source.lines[line - 1]
    if empty or len(snippet.encode()) > _LONGEST_LINE:
        return text
    snippet = snippet.replace("\t", " ")
    marks = "".join("." if ord(char) < 0x80 else "．" for char in snippet[:column])
    at = snippet[column : column + 1]
    return f"{text}\n | {snippet}\n | {marks}{'^' if not at or ord(at) < 0x80 else '＾'}"
