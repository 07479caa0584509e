"""What `import konverge` costs, against what every asynchronous program with TLS and msgspec imports anyway.

Each sample is a fresh interpreter's CPU time, less nothing: both sides pay for starting Python. The names under which
peers stand here are programs, not libraries.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pkgutil import iter_modules

from bench._progress import turns
from bench._report import OURS, Bar, Figure, Report

BASE = "asyncio, ssl, msgspec"
PROGRAMS = {
    OURS: "import konverge",
    BASE: "import asyncio, ssl, msgspec",
    "konverge.client": "import konverge.client",
}
LAZY = (
    "import sys, konverge, konverge.client; print(*[m for m in sys.modules if m.startswith('konverge.objects.kinds.')])"
)
LOADED = "modules of kinds loaded by the client"
METRIC = "CPU of a fresh interpreter"


def run(quick: bool) -> Report:
    rounds = 5 if quick else 21
    samples: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in turns("imports", rounds, [f"{len(PROGRAMS)} programs"]):
        for name, program in PROGRAMS.items():
            samples[name].append(_cpu_of(program) * 1e3)
    loaded = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True).stdout.split()
    report = Report("imports", f"imports: {rounds} fresh interpreters each")
    report.figures = [Figure.of(METRIC, name, values, "ms") for name, values in samples.items()]
    report.figures.append(Figure(LOADED, OURS, len([name for name in loaded if "._" not in name]), ""))
    report.figures.append(Figure(LOADED, "all there are", len(list(_kinds())), ""))
    report.bars = [
        Bar(METRIC, 1.5, against=BASE),
        Bar(LOADED, 0, text="a kind's module is imported when it is used"),
    ]
    report.notes = ["konverge.client stands here to be seen; the bar is on `import konverge`, whose root loads nothing"]
    return report


def _kinds() -> Iterator[str]:
    from konverge.objects import kinds

    return (module.name for module in iter_modules(kinds.__path__) if not module.name.startswith("_"))


def _cpu_of(program: str) -> float:
    """CPU seconds, user and system, of one interpreter that runs this program."""
    process = subprocess.Popen([sys.executable, "-c", program])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{program!r} failed")
    return used.ru_utime + used.ru_stime
