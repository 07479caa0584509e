"""Long work in short pieces: whoever goes over many objects lets others have their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

PIECE = 256
"""So many objects may be decoded, tested or rendered in one turn of the loop: a few milliseconds."""


async def in_turns(make: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """`make` of each."""
    made = [make(item) for item in items[:PIECE]]
    for start in range(PIECE, len(items), PIECE):
        await asyncio.sleep(0)
        made += [make(item) for item in items[start : start + PIECE]]
    return made
