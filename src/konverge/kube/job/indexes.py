"""Sets of completion indexes and their text: `0,1` for two in a row, `3-5` for more."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str, completions: int) -> set[int]:
    """The indexes below `completions` in a text; invalid parts are left out. Upstream: parseIndexesFromString.

    >>> sorted(parse("0,2-4,7", 4))
    [0, 2, 3]
    """
    indexes: set[int] = set()
    for part in text.split(",") if text else []:
        first, dash, last = part.partition("-")
        if first.isdigit() and (not dash or last.isdigit()):
            indexes.update(range(int(first), min(int(last) if dash else int(first), completions - 1) + 1))
    return indexes


def render(indexes: Iterable[int]) -> str:
    """
    >>> render({5, 0, 1, 3, 4, 9})
    '0,1,3-5,9'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
