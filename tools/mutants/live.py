"""Puts the code of a mutant into the functions of a running process.

All function objects that have the original code get the mutated one: methods, properties, functions behind decorators
and closures alike, because they share the function object that is changed. Functions that were made inside of the
mutated one before (a decorator's wrapper, say) get the nested code that belongs to them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

_Key = tuple[str, str, int]


def _key(code: CodeType) -> _Key:
    return (code.co_filename, code.co_qualname, code.co_firstlineno)


class LiveFunctions:
    """The functions of a source folder that exist now. Made before `gc.freeze`, which hides objects."""

    def __init__(self, source: str) -> None:
        self._functions: dict[_Key, list[FunctionType]] = {}
        for value in gc.get_objects():
            if isinstance(value, FunctionType) and value.__code__.co_filename.startswith(source):
                self._functions.setdefault(_key(value.__code__), []).append(value)

    def replace(self, code: CodeType) -> int:
        """Gives the mutated code to the functions of the original one. Says how many functions that were."""
        originals = self._functions.get(_key(code), [])
        if not originals:
            return 0
        changed = 0
        for old, new in _pairs(originals[0].__code__, code):
            for function in self._functions.get(_key(old), []):
                if function.__code__ is old:
                    function.__code__ = new
                    changed += 1
        return changed


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Each code object inside of the old one, with the one in its place in the new one."""
    yield old, new
    rest = _nested(new)
    for inner in _nested(old):
        match = next((code for code in rest if _key(code) == _key(inner)), None)
        if match is not None:
            rest.remove(match)
            yield from _pairs(inner, match)


def _nested(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
