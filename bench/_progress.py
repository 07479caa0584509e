"""Which part of a benchmark runs, on standard error: a full run takes twenty minutes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_BEGAN = time.monotonic()


def turns(what: str, rounds: int, peers: Iterable[T], name: Callable[[T], str] = str) -> Iterator[T]:
    """Each peer in each round, with a line for every turn.

    Every second round goes the other way: a machine that grows slower, or a server that grows, favours nobody.
    """
    listed = list(peers)
    for number in range(1, rounds + 1):
        for peer in listed if number % 2 else listed[::-1]:
            say(f"{what}: round {number} of {rounds}, {name(peer)}")
            yield peer


def say(text: str) -> None:
    minutes, seconds = divmod(int(time.monotonic() - _BEGAN), 60)
    print(f"  {minutes:3d}:{seconds:02d}  {text}", file=sys.stderr, flush=True)
