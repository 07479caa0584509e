"""`konverge check`: cost per plan, replays, mutants, and published bugs of other operators where these are at hand.

Operators in Go are looked for in $OPERATORS_HOME; without it their part is left out, and that is said.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from bench._known_bugs import AMONG_FIRST, BUGS
from bench._mutants import quiet, summary, tried
from bench._progress import say
from bench._report import OURS, Bar, Figure, Report
from konverge.check.model import Plan, Task, encode
from konverge.check.planning import planner_for
from konverge.check.reference import reference_of
from konverge.check.subjects import Checked, from_target
from konverge.check.workload import default

PROFILES = Path(__file__).parent / "check"
ALLOWED = {"webapp": 1.0, "nacos": 3.0, "wukong": 3.0}
"""CPU seconds of a plan, in process."""
REPLAYS = 20
MUTANTS_FOUND = 0.95
PROGRAM_BUDGET, QUICK_BUDGET = "8m", "1m"
WALL, CPU = 600.0, 1200.0
"""Seconds that a check of a program may take in all: ten minutes on two free cores."""


def run(*, quick: bool = False) -> Report:
    report = Report("check", "konverge check: CPU of a plan, replays, mutants, published bugs")
    with quiet():
        for operator, allowed in ALLOWED.items():
            say(f"check: plans of {operator}")
            _cost(report, operator, allowed, plans=4 if quick else 20)
        _replays(report, 5 if quick else REPLAYS)
        if not quick:
            _mutants(report)
    _programs(report, QUICK_BUDGET if quick else PROGRAM_BUDGET)
    return report


# ------------------------------------------------------------------ in process


def _base(checked: Checked) -> Task:
    steps = default(checked.samples, checked.definitions, namespace=checked.setup.namespace)
    return Task(subject=checked.subject, setup=checked.setup, steps=steps, plan=Plan("reference"))


def _plans(checked: Checked, base: Task) -> tuple[list[Plan], Any]:
    with checked.runner(1) as runner:
        reference = reference_of(runner.run(base), runner.run(msgspec.structs.replace(base, seed=1)))
        planner = planner_for(checked.samples, checked.definitions, checked.setup.namespace)
        return planner(reference, (), 0).plans, runner


def _cost(report: Report, operator: str, allowed: float, *, plans: int) -> None:
    checked = from_target(operator)
    base = _base(checked)
    chosen, runner = _plans(checked, base)
    spent = [runner.run(msgspec.structs.replace(base, plan=plan)).cpu for plan in chosen[:plans]]
    metric = f"CPU of a plan, {operator}"
    report.figures += [Figure(metric, OURS, mean(spent), "s"), Figure(metric, "allowed", allowed, "s")]
    report.bars.append(Bar(metric, 1.0, "allowed"))


def _replays(report: Report, times: int) -> None:
    """The same plan gives the same run, to the byte."""
    checked = from_target("webapp")
    base = _base(checked)
    chosen, runner = _plans(checked, base)
    task = msgspec.structs.replace(base, plan=next(plan for plan in chosen if plan.pattern == "crash"))
    seen: set[bytes] = set()
    for number in range(times):
        say(f"check: replay {number + 1} of {times}")
        again = runner.run(task)
        again.seconds = again.cpu = 0.0
        seen.add(encode(again))
    report.notes.append(f"replays of one plan: {times} runs, {len(seen)} different")
    if len(seen) > 1:
        report.failures.append(f"{times} replays of one plan gave {len(seen)} different runs")


def _mutants(report: Report) -> None:
    say("check: mutants")
    results = list(tried())
    found = sum(result.found is not None for result in results)
    report.notes += summary(results).splitlines()
    if results and found / len(results) < MUTANTS_FOUND:
        report.failures.append(f"{found} of {len(results)} mutants were found, wanted are {MUTANTS_FOUND:.0%}")


# ------------------------------------------------------------------ other people's operators


def _programs(report: Report, budget: str) -> None:
    home = os.environ.get("OPERATORS_HOME", "")
    if not home:
        report.notes.append("not tried, since OPERATORS_HOME is not set: published bugs of operators in Go")
        return
    for profile in dict.fromkeys(bug.profile for bug in BUGS):
        say(f"check: {profile}")
        spent = _Spent()
        result = _checked(PROFILES / profile, budget)
        bugs = [bug for bug in BUGS if bug.profile == profile]
        if isinstance(result, str):
            report.notes.append(f"not tried: {profile}: {result}")
            continue
        report.notes.append(f"{profile}: {len(result['findings'])} findings, {spent}")
        if spent.is_too_much:
            report.failures.append(f"{profile} took {spent}, allowed are {WALL:.0f} s or {CPU:.0f} CPU-s")
        for bug in bugs:
            position = bug.position(result["findings"]) if bug.pattern else -1
            if position < 0:
                report.notes.append(f"{bug.name}: to be read by a person, among {len(result['findings'])} findings")
            elif bug.fixed:
                report.notes.append(f"{bug.name}, fixed release: {'absent' if not position else 'PRESENT'}")
                if position:
                    report.failures.append(f"{bug.name} is reported for a release that has it fixed ({profile})")
            else:
                report.notes.append(f"{bug.name}: {f'finding {position}' if position else 'not found'}")
                if not 0 < position <= AMONG_FIRST:
                    report.failures.append(f"{bug.name} is not among the first {AMONG_FIRST} findings ({profile})")


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


def _checked(profile: Path, budget: str) -> dict[str, Any] | str:
    """The findings of the plain command; a text if it could not test."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "konverge.cli.main", "check", "--operator", str(profile), "--budget", budget]
        done = subprocess.run(
            [*command, "--report", folder, "--json", str(out)], capture_output=True, text=True, timeout=3600
        )
        if not out.exists():
            return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
        found: dict[str, Any] = json.loads(out.read_text())
        return found
