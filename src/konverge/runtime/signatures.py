"""Checks of the functions that a declaration takes, so that a mistake shows where it was made and not at an event."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def require_arguments(function: Callable[..., Any], count: int, what: str, example: str) -> None:
    """Refuse what cannot be called with so many arguments, or gives a coroutine. Raises TypeError."""
    if not callable(function):
        raise TypeError(f"{what} is {function!r}, which cannot be called: write {example}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise TypeError(f"{what} is asynchronous, and events do not wait: write {example}, without async")
    if not takes(function, count):
        arguments = "one argument" if count == 1 else f"{count} arguments"
        raise TypeError(f"{what} cannot be called with {arguments}: write {example}")


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments. One that does not say, as some in C, can."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
