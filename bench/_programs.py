"""Other people's operators under `konverge check`: published bugs by rank and seconds, cost of a plan, replays.

Each operator is checked by the plain command with its one file below bench/check. They are looked for in
$OPERATORS_HOME; without it this part is left out, and that is said.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._known_bugs import AMONG_FIRST, BUGS, Bug
from bench._progress import say
from bench._report import OURS, Bar, Figure, Report

PROFILES = Path(__file__).parent / "check"
BUDGET, QUICK_BUDGET = 480, 60
"""Seconds."""
SPARE = 420
"""Seconds for the reference and for what is under way at the end; an operator that takes longer is not tried."""
WALL, CPU = 600.0, 1200.0
"""Seconds that a check of a program may take in all: ten minutes on two free cores."""
CPU_OF_A_PLAN = 4.0
REPLAYED, REPLAYS, MOST_DIFFERENT = "rabbitmq/check.toml", 20, 1
REPLAY_TIME = 300
AT_ONCE = 4


@dataclass
class Checked:
    """What the command wrote, or why it wrote nothing."""

    report: dict[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.report["findings"])


def programs(report: Report, *, quick: bool) -> None:
    if not os.environ.get("OPERATORS_HOME"):
        report.notes.append("not tried, since OPERATORS_HOME is not set: published bugs of operators in Go")
        return
    for profile in dict.fromkeys(bug.profile for bug in BUGS):
        say(f"check: {profile}")
        spent = _Spent()
        with tempfile.TemporaryDirectory() as folder:
            checked = _checked(PROFILES / profile, Path(folder), QUICK_BUDGET if quick else BUDGET)
            if checked.problem:
                report.notes.append(f"not tried: {profile}: {checked.problem}")
                continue
            _cost(report, profile, checked, spent)
            for bug in BUGS:
                if bug.profile == profile:
                    _judge(report, bug, checked, quick=quick)
            if profile == REPLAYED and not quick:
                _replays(report, checked)


def _checked(profile: Path, folder: Path, budget: int) -> Checked:
    """By the plain command."""
    out = folder / "out.json"
    command = [sys.executable, "-m", "konverge.cli.main", "check", "--operator", str(profile), "--budget", f"{budget}s"]
    try:
        done = subprocess.run(
            [*command, "--report", str(folder), "--json", str(out)],
            capture_output=True, text=True, timeout=budget + SPARE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Checked(problem=f"it did not end within {budget + SPARE} s")
    if not out.exists():
        said = done.stderr.strip().splitlines()
        return Checked(problem=said[-1] if said else f"exit code {done.returncode}")
    return Checked(json.loads(out.read_text()))


class _Spent:
    """Wall time and CPU of the programs that ended since then."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), self._children()

    @staticmethod
    def _children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    @property
    def is_too_much(self) -> bool:
        """On a busy machine wall time says nothing, and the CPU that two cores have in it does."""
        return time.monotonic() - self._began > WALL and self._children() - self._used > CPU

    def __str__(self) -> str:
        return f"{time.monotonic() - self._began:.0f} s, {self._children() - self._used:.0f} CPU-s"


def _cost(report: Report, profile: str, checked: Checked, spent: _Spent) -> None:
    data = checked.report
    done, left = sum(data["tested"].values()), sum(data["leftOut"].values())
    report.notes.append(
        f"{profile}: {done} plans in {data['searched']:.0f} s and {data['cpu']:.0f} CPU-s, {left} left out; "
        f"{len(checked.findings)} findings, {spent} in all"
    )
    if spent.is_too_much:
        report.failures.append(f"{profile} took {spent}, allowed are {WALL:.0f} s or {CPU:.0f} CPU-s")
    if done:
        metric = f"CPU of a plan, {profile}"
        report.figures += [
            Figure(metric, OURS, data["cpuPerPlan"], "s"),
            Figure(metric, "allowed", CPU_OF_A_PLAN, "s"),
        ]
        report.bars.append(Bar(metric, 1.0, "allowed"))


def _judge(report: Report, bug: Bug, checked: Checked, *, quick: bool) -> None:
    """A quick look may miss a bug, but what is fixed is absent in any."""
    findings = checked.findings
    if not bug.pattern:
        report.notes.append(f"{bug.name}: to be read by a person, among {len(findings)} findings")
        return
    position = bug.position(findings)
    if bug.fixed:
        report.notes.append(f"{bug.name}, fixed release: {'absent' if not position else f'finding {position}'}")
        if position:
            report.failures.append(f"{bug.name} is reported for a release that has it fixed ({bug.profile})")
        return
    seen = f"finding {position}, first seen after {findings[position - 1]['after']:.0f} s" if position else "not found"
    report.notes.append(f"{bug.name}: {seen}")
    if not 0 < position <= AMONG_FIRST and not quick:
        report.failures.append(f"{bug.name} is not among the first {AMONG_FIRST} findings ({bug.profile})")


def _replays(report: Report, checked: Checked) -> None:
    """Of the first findings, until there are enough: each must show the same again."""
    files = [finding["replay"] for finding in checked.findings if finding["confirmed"][0]][:AMONG_FIRST]
    if not files:
        return
    wanted = [files[number % len(files)] for number in range(REPLAYS)]
    say(f"check: {REPLAYS} replays")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        shown = sum(pool.map(_shows_again, wanted))
    report.notes.append(f"replays as a child: {shown} of {REPLAYS} show the same finding")
    if REPLAYS - shown > MOST_DIFFERENT:
        report.failures.append(f"{shown} of {REPLAYS} replays as a child show the same finding")


def _shows_again(file: str) -> bool:
    command = [sys.executable, "-m", "konverge.cli.main", "check", "--replay", file]
    try:
        return subprocess.run(command, capture_output=True, timeout=REPLAY_TIME, check=False).returncode == 1
    except subprocess.TimeoutExpired:
        return False
