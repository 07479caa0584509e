"""`konverge check`: cost per plan, replays, mutants, and published bugs of other operators where these are at hand.

Operators in Go are looked for in $OPERATORS_HOME; without it their part is left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import msgspec

from bench import _go_mutants
from bench._mutants import CPU, Result, line, quiet, summary, tried
from bench._programs import programs
from bench._progress import say
from bench._report import OURS, Bar, Figure, Report
from konverge.check.branches import Branches
from konverge.check.collector import what_stays_is_frozen
from konverge.check.model import Plan, Task, encode
from konverge.check.planning import planner_for
from konverge.check.reference import reference_of
from konverge.check.subjects import Checked, from_target
from konverge.check.workload import default

ALLOWED = {"webapp": 1.0, "nacos": 3.0, "wukong": 3.0}
"""CPU seconds of a plan, in process."""
REPLAYS = 20
MUTANTS_FOUND = 0.95


def run(*, quick: bool = False) -> Report:
    report = Report("check", "konverge check: CPU of a plan, replays, mutants, published bugs")
    with quiet():
        for operator, allowed in ALLOWED.items():
            say(f"check: plans of {operator}")
            _cost(report, operator, allowed, plans=4 if quick else 20)
        _replays(report, 5 if quick else REPLAYS)
        if not quick:
            _mutants(report)
    programs(report, quick=quick)
    return report


# ------------------------------------------------------------------ in process


def _base(checked: Checked) -> Task:
    steps = default(checked.samples, checked.definitions, namespace=checked.setup.namespace)
    return Task(subject=checked.subject, setup=checked.setup, steps=steps, plan=Plan("reference"))


@contextmanager
def _branches(checked: Checked) -> Iterator[tuple[Task, Branches, list[Plan]]]:
    """A base, what runs its plans as a check does, and the plans."""
    base = _base(checked)
    with TemporaryDirectory() as folder, checked.runner(1) as runner:
        first = runner.run(msgspec.structs.replace(base, branches=folder))
        reference = reference_of(first, runner.run(msgspec.structs.replace(base, seed=1)))
        planner = planner_for(checked.samples, checked.definitions, checked.setup.namespace)
        yield base, Branches(runner, base, reference, Path(folder)), planner(reference, (), 0).plans


def _cost(report: Report, operator: str, allowed: float, *, plans: int) -> None:
    checked = from_target(operator)
    with what_stays_is_frozen(), _branches(checked) as (base, branches, chosen):
        every = max(1, len(chosen) // plans)  # the first of each kind have the whole workload, and most have a part
        runs = [branches.run(msgspec.structs.replace(base, plan=plan)) for plan in chosen[::every][:plans]]
    spent = mean(run.cpu for run in runs)
    metric = f"CPU of a plan, {operator}"
    say(f"check: {metric}: {spent:.2f} s")
    report.figures += [Figure(metric, OURS, spent, "s"), Figure(metric, "allowed", allowed, "s")]
    report.bars.append(Bar(metric, 1.0, "allowed"))


def _replays(report: Report, times: int) -> None:
    """The same plan gives the same run, to the byte."""
    checked = from_target("webapp")
    with _branches(checked) as (base, branches, chosen), checked.runner(1) as runner:
        task = msgspec.structs.replace(base, plan=next(plan for plan in chosen if plan.pattern == "crash"))
        seen: set[bytes] = set()
        for number in range(times):
            say(f"check: replay {number + 1} of {times}")
            again = (branches if number % 2 else runner).run(task)  # a branch is the same as a whole run
            again.seconds = again.cpu = 0.0
            again.plan = task.plan
            seen.add(encode(again))
    report.notes.append(f"replays of one plan: {times} runs, {len(seen)} different")
    if len(seen) > 1:
        report.failures.append(f"{times} replays of one plan gave {len(seen)} different runs")


def _mutants(report: Report) -> None:
    say("check: mutants")
    results: list[Result] = []
    for result in chain(tried(), _go_mutants.tried()):
        say(f"check: {line(result)}")
        results.append(result)
    if not any(result.name.startswith("go: ") for result in results):
        report.notes.append("not tried, since Go or its modules are missing: mutants of the small operator in Go")
    sane = [result for result in results if result.name == "go: sane"]
    if any(result.found for result in sane):
        report.failures.append("something is found in the operator in Go without any mutant")
    results = [result for result in results if result not in sane]
    found = sum(result.found is not None and result.cpu <= CPU for result in results)
    report.notes += summary(results).splitlines()
    if results and found / len(results) < MUTANTS_FOUND:
        report.failures.append(
            f"{found} of {len(results)} mutants were found in {CPU:g} CPU-s, wanted are {MUTANTS_FOUND:.0%}"
        )
