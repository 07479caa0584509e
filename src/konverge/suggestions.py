"""What a user probably meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """`; did you mean …?`, or nothing when no known word is near. `before` is written before the known word.

    >>> did_you_mean("webap", ["nacos", "webapp"]), did_you_mean("x", ["nacos"])
    ('; did you mean webapp?', '')
    """
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), [*known], n=1, cutoff=0.6)
    return f"; did you mean {before}{near[0]}?" if near else ""
