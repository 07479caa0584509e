"""Annotations of models as types, evaluated once.

They are texts (`from __future__ import annotations`), and msgspec evaluates those of a class and of its bases each time
that it describes the class, lists its fields or makes a decoder for it. A definition needs all of these: evaluated
beforehand, and kept, it is written in two thirds of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from inspect import get_annotations
from typing import Any, get_args, get_origin

import msgspec


def evaluate(models: Iterable[type[msgspec.Struct]]) -> None:
    """Make types of the annotations of these classes, of their bases, and of all that they contain.

    A text that cannot be evaluated stays: whoever needs it says what is wrong with it.
    """
    seen: set[type] = set()
    left: list[type] = [*models]
    while left:
        kind = left.pop()
        for cls in (get_origin(kind) or kind).__mro__:
            if cls not in seen:
                seen.add(cls)
                left += (found for value in _types_of(cls) for found in _structs_in(value))


def _types_of(cls: type) -> Iterator[Any]:
    module = sys.modules.get(cls.__module__)
    names = vars(module) if module is not None else {}
    scope: dict[str, Any] = {}
    for name, value in get_annotations(cls).items():
        if isinstance(value, str):
            scope = scope or dict(vars(cls))
            try:
                value = cls.__annotations__[name] = eval(value, scope, names)  # noqa: S307 - the author's own classes
            except (NameError, AttributeError, TypeError, SyntaxError):
                continue
        yield value


def _structs_in(value: Any) -> Iterator[type]:
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        yield value
    for part in get_args(value):
        yield from _structs_in(part)
