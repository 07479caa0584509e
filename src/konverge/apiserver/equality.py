"""Equality of JSON values as Go has it: true is no number. To Python, True and 1 are equal.

1 and 1.0 are equal here too: Go writes both as 1. Where they are to differ, as in the `test` of a JSON patch, there is
`konverge.apiserver.merge.json_patch.same`.
"""

from __future__ import annotations

from typing import Any


def equal(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal; those that differ, as most do that are compared, cost no more than `==`.

    >>> equal({"a": [1]}, {"a": [1.0]}), equal({"a": [1]}, {"a": [True]})
    (True, False)
    """
    return bool(a == b) and _same_booleans(a, b)


def _same_booleans(a: Any, b: Any) -> bool:
    """Of two values that Python takes for equal."""
    if a is b:
        return True
    if isinstance(a, dict):
        return all(_same_booleans(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(_same_booleans, a, b))
    return isinstance(a, bool) is isinstance(b, bool)
