"""Sets of characters as sorted ranges of code points that do not touch.

The named classes and the case folding are Go's (data/unicode.json.gz, made by tools/make_unicode_tables.py): Python's
own tables are of another version of Unicode and know no scripts.
"""

from __future__ import annotations

import gzip
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources
from itertools import accumulate
from typing import Any

import msgspec

Ranges = tuple[tuple[int, int], ...]

EVERYTHING: Ranges = ((0, sys.maxunicode),)
NOT_NEWLINE: Ranges = ((0, 9), (11, sys.maxunicode))
PERL: dict[str, Ranges] = {
    "d": ((48, 57),),
    "s": ((9, 10), (12, 13), (32, 32)),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Upstream: cleanClass."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def invert(ranges: Ranges) -> Ranges:
    inverted: list[tuple[int, int]] = []
    free = 0
    for low, high in ranges:
        if low > free:
            inverted.append((free, low - 1))
        free = high + 1
    if free <= sys.maxunicode:
        inverted.append((free, sys.maxunicode))
    return tuple(inverted)


@lru_cache(maxsize=1024)
def fold(ranges: Ranges) -> Ranges:
    """The class with the other cases of its characters."""
    codes, folds = _folds()
    more: set[int] = set()
    for low, high in ranges:
        for code in codes[bisect_left(codes, low) : bisect_right(codes, high)]:
            more.update(folds[code])
    return union([*ranges, *((code, code) for code in more)]) if more else ranges


def canonical(name: str) -> str:
    """Upstream: canonicalName."""
    return name.translate({ord(char): None for char in "_- "}).capitalize() if name.isascii() else name


@lru_cache(maxsize=64)
def unicode_class(name: str) -> Ranges | None:
    """The characters of a general category or a script; None when there is no such class. Upstream: unicodeTable."""
    name = canonical(name)
    if name == "Any":
        return EVERYTHING
    if name == "Ascii":
        return POSIX["ascii"]
    if name == "Assigned":
        return invert(_class("Cn"))
    data = _unicode()
    name = name if name in data["classes"] else data["aliases"].get(name, "")
    return _class(name) if name else None


def _class(name: str) -> Ranges:
    bounds = list(accumulate(_unicode()["classes"][name]))
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


@cache
def _unicode() -> Any:
    packed = resources.files("konverge.apiserver").joinpath("data/unicode.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed))


@cache
def _folds() -> tuple[list[int], dict[int, list[int]]]:
    folds = {code: orbit for orbit in _unicode()["folds"] for code in orbit}
    return sorted(folds), folds
