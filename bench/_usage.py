"""What this process has used so far, as the system says it."""

from __future__ import annotations

import resource
from pathlib import Path


def cpu() -> float:
    """Seconds of CPU time, of user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident() -> int:
    """Bytes in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
