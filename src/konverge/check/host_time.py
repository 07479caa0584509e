"""Time that the host of a virtual machine takes away.

Neither a program that computes nor one that waits for a processor is charged with it: the machine stands still for
them, and its clock does not.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""The column in a line of /proc/stat, the name of the processor being the first."""


def stolen(stat: Path = Path("/proc/stat")) -> list[float]:
    """Seconds, of each processor; empty where that cannot be known."""
    try:
        lines = stat.read_text(encoding="ascii").splitlines()[1:]  # the first is the sum
    except OSError:
        return []
    columns = (line.split() for line in lines if line.startswith("cpu"))
    return [int(column[_STEAL]) / _TICKS for column in columns if len(column) > _STEAL]


def longest(before: list[float], after: list[float]) -> float:
    """What was taken from the processor that lost most: whoever was to run there has waited so long."""
    return max((now - then for then, now in zip(before, after, strict=False)), default=0.0)
