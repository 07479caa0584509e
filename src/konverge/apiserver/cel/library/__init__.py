"""The implementations of the functions, by the ids of their overloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Implementation = Callable[..., Any]


@cache
def implementations() -> dict[str, Implementation]:
    """All functions: overload id -> callable; the receiver is the first argument."""
    from konverge.apiserver.cel.library import (
        authz,
        kubernetes,
        lists,
        network,
        optionals,
        standard,
        strings,
        timestamps,
    )

    functions: dict[str, Implementation] = {}
    for module in (standard, timestamps, strings, lists, optionals, kubernetes, network, authz):
        functions |= module.FUNCTIONS
    return functions
