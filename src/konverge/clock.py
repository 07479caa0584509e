"""The only source of time and of randomness.

Everything else asks this module, and this module asks the running event loop first: a simulated loop has a wall clock
and a seeded generator of its own, so that one seed gives one history. Outside of a simulation the answers are those of
the operating system. Waiting is done with asyncio (`asyncio.sleep`, `asyncio.timeout`), which uses loop time.
"""

from __future__ import annotations

import random
import time
from asyncio import _get_running_loop
from datetime import UTC, datetime
from typing import Protocol, cast

_ahead = 0.0
"""Seconds by which the wall clock of this process is ahead of the machine's: see `jump`."""
_process_rng = random.Random()  # noqa: S311 - jitter and names, never secrets

# Version 4 and the usual variant, as RFC 9562 places them.
_UID_VERSION = 4 << 76 | 0x8000 << 48
_UID_RANDOM = ~(0xF000 << 64 | 0xC000 << 48)


class SimulatedLoop(Protocol):
    """What an event loop offers when it also owns wall time and randomness."""

    def wall_time(self) -> float: ...

    @property
    def rng(self) -> random.Random: ...


def _simulated() -> SimulatedLoop | None:
    loop = _get_running_loop()
    return cast("SimulatedLoop", loop) if hasattr(loop, "wall_time") else None


def is_simulated() -> bool:
    """Whether the running loop owns time and randomness: then nothing may be left to threads."""
    return _simulated() is not None


def now() -> float:
    """Seconds since the epoch."""
    loop = _simulated()
    return time.time() + _ahead if loop is None else loop.wall_time()


def jump(seconds: float) -> None:
    """Set the wall clock of this process forwards or back, as an administrator does that of a machine.

    Timers do not notice. A simulated loop has a clock of its own, which this does not move.
    """
    global _ahead
    _ahead += seconds


def monotonic() -> float:
    """Seconds that never go backwards; the loop's own time where a loop runs."""
    loop = _get_running_loop()
    return time.monotonic() if loop is None else loop.time()


def elapsed() -> float:
    """Like `monotonic`, but it also counts the time that the machine was suspended, where the system knows it.

    Leases are measured with it: other candidates do not wait for a suspended laptop.
    """
    if _simulated() is None and hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return monotonic()


def utc_now() -> datetime:
    return datetime.fromtimestamp(now(), UTC)


def rng() -> random.Random:
    """The generator for jitter, names and choices. Not for secrets: those come from `secrets`."""
    loop = _simulated()
    return _process_rng if loop is None else loop.rng


def seeded(seed: int) -> random.Random:
    """A separate generator, for plans that a seed must reproduce whatever else is drawn."""
    return random.Random(seed)  # noqa: S311 - it must be reproducible


def new_uid() -> str:
    """A random (version 4) UUID, reproducible in a simulation."""
    bits = rng().getrandbits(128)
    text = f"{bits & _UID_RANDOM | _UID_VERSION:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
