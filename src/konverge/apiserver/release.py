"""Giving back what a large definition was compiled to, in small pieces.

When the last reference to a tree of a million objects goes, all of them are freed at once, and no other thread runs
meanwhile: the interpreter's lock is kept for a tenth of a second and more, whichever thread does it. Here the parts of
such a tree are listed first, parents before children. Then the list is emptied from its beginning: each step frees one
part, because its children are still in the list, and between two steps others have their turn.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Iterable
from typing import Any

from konverge import clock
from konverge.apiserver import aside

_CONTAINERS = frozenset(
    (dict, list, tuple, set, frozenset, types.FunctionType, types.CellType, types.MethodType, functools.partial)
)
_OURS = (
    "konverge.apiserver.crd.",
    "konverge.apiserver.cel.",
    "konverge.apiserver.schema.",
    "konverge.apiserver.registry",
)
"""Modules whose objects a compiled definition consists of. Others (the store, say) outlive it."""
_AT_ONCE = 1000
"""Parts whose children are asked for in one call, which others wait for."""


async def release(roots: list[Any]) -> None:
    """Free what only these refer to. The list is emptied; the caller keeps no other reference to what was in it."""
    if clock.is_simulated():  # where work aside is done on the loop as well
        roots.clear()
        return
    await aside.run(aside.FROM, _free, roots)


def _free(roots: list[Any]) -> None:
    parts = _parts(roots)
    roots.clear()
    parts.reverse()
    while parts:
        parts.pop()


def _parts(roots: Iterable[Any]) -> list[Any]:
    """Everything that the roots consist of, parents before children."""
    parts = list(roots)
    seen = {id(vars(module)) for module in list(sys.modules.values())}  # which functions refer to
    kinds: dict[type, bool] = {}
    begin = 0
    while batch := parts[begin : begin + _AT_ONCE]:
        begin += len(batch)
        for child in gc.get_referents(*batch):
            kind = type(child)
            is_part = kinds.get(kind)
            if is_part is None:
                is_part = kinds[kind] = kind in _CONTAINERS or kind.__module__.startswith(_OURS)
            if is_part and id(child) not in seen:
                seen.add(id(child))
                parts.append(child)
    return parts
