"""Texts for people: shortened, on one line, and without anything that a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Iterable

from konverge.explain.sentences import say

LONGEST = 240
"""Characters of another program's message inside a sentence."""

# C0 and C1 controls, DEL, and what turns the direction of writing or hides: a name could pretend to be another.
_OBEYED = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """What others wrote, so that it can be shown on a terminal: controls are shown, not obeyed.

    >>> printable("web\\x1b[31m-0")
    'web\\\\x1b[31m-0'
    """
    return _OBEYED.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def shorten(message: str, longest: int = LONGEST) -> str:
    """A message on one line, without its end if it is long.

    >>> shorten("no\\n such  thing.")
    'no such thing'
    """
    line = " ".join(message[: 4 * longest].split()).rstrip(". ")
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def listed(names: Iterable[str], most: int = 3) -> str:
    """
    >>> listed(["a", "b"]), listed("abcde")
    ('a and b', 'a, b, c and 2 more')
    """
    every = list(names)
    if len(every) > most:
        return say("{names} and {count} more", names=", ".join(every[:most]), count=len(every) - most)
    if len(every) < 2:
        return "".join(every)
    return say("{names} and {last}", names=", ".join(every[:-1]), last=every[-1])
