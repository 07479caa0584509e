"""Sets of characters as sorted ranges of code points."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]

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
# The standard library knows categories but no scripts; these are the scripts that patterns name in practice.
_SCRIPT_WORDS = {
    "Latin": "LATIN",
    "Greek": "GREEK",
    "Cyrillic": "CYRILLIC",
    "Han": "CJK",
    "Hiragana": "HIRAGANA",
    "Katakana": "KATAKANA",
    "Hangul": "HANGUL",
    "Arabic": "ARABIC",
    "Hebrew": "HEBREW",
    "Thai": "THAI",
    "Devanagari": "DEVANAGARI",
    "Armenian": "ARMENIAN",
    "Georgian": "GEORGIAN",
}
_MINOR = {
    "C": "c f o s",
    "L": "l m o t u",
    "M": "c e n",
    "N": "d l o",
    "P": "c d e f i o s",
    "S": "c k m o",
    "Z": "l p s",
}
_CATEGORIES = frozenset(_MINOR) | {major + minor for major, minors in _MINOR.items() for minor in minors.split()}


def invert(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    free = 0
    for low, high in sorted(ranges):
        if low > free:
            found.append((free, low - 1))
        free = max(free, high + 1)
    if free <= sys.maxunicode:
        found.append((free, sys.maxunicode))
    return tuple(found)


@lru_cache(maxsize=64)
def unicode_class(name: str) -> Ranges | None:
    """The characters of a general category or a script; None when there is no such class."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    if name in _CATEGORIES:
        return _where(lambda char: unicodedata.category(char).startswith(name))
    word = _SCRIPT_WORDS.get(name)
    if word is None:
        return None
    return _where(lambda char: unicodedata.category(char)[0] in "LM" and unicodedata.name(char, "").startswith(word))


def _where(wanted: Callable[[str], bool]) -> Ranges:
    found: list[tuple[int, int]] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and wanted(chr(code))
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            found.append((start, code - 1))
            start = -1
    return tuple(found)
