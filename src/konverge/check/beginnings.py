"""Runs on real time begin where the reference was at rest before what they disturb; the steps before are not repeated.

What an operator knows after a start is in the cluster, so a run from there goes on as one from the beginning does. It
is tried without any perturbation first: from where that does not lead to the reference's states, or cannot be done,
runs have their whole workload. Findings are confirmed by whole runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import msgspec

from konverge.check.findings import group_of
from konverge.check.model import Alarm, Plan, Run, Task
from konverge.check.plans.length import Length
from konverge.check.reference import Reference
from konverge.check.snapshot import Snapshot


class _Runner(Protocol):
    jobs: int

    def run(self, task: Task) -> Run: ...


Judge = Callable[[Run, Reference], Iterable[Alarm]]


class Beginnings:
    """A runner for plans. `plan` gives a plan its beginning; the runs are as if they had begun at the first step."""

    def __init__(self, runner: _Runner, reference: Reference) -> None:
        self._runner, self._reference = runner, reference
        self.jobs = runner.jobs
        self._snapshots: dict[int, Snapshot] = {}
        self._length = Length(reference)

    def try_out(self, base: Task, judge: Judge) -> None:
        """Learn from which steps runs can begin: those from which an undisturbed one shows nothing new."""
        run = self._reference.run
        usual = {group_of(alarm) for alarm in judge(run, self._reference)}
        last = len(run.checkpoints)

        def is_good(snapshot: Snapshot) -> bool:
            begin = snapshot.step + 1
            plan = Plan("reference", begin=begin, first=min(begin + 1, last))
            tried = self._begun(msgspec.structs.replace(base, plan=plan), snapshot)
            alarms = list(judge(tried, self._reference))
            return (
                not tried.problem
                and len(tried.checkpoints) == plan.first
                and all(checkpoint.rested for checkpoint in tried.checkpoints)
                and all(alarm.severity == "low" or group_of(alarm) in usual for alarm in alarms)
            )

        candidates = [item for item in run.snapshots if item.step + 1 < last]
        with ThreadPoolExecutor(max(1, self.jobs), "begin") as pool:
            good = list(pool.map(is_good, candidates))
        self._snapshots = {item.step + 1: item for item, fits in zip(candidates, good, strict=True) if fits}

    def plan(self, plan: Plan) -> Plan:
        """The plan with the last beginning that leaves everything as it is."""
        latest = self._length.beginning(plan)
        begin = max((step for step in self._snapshots if step <= latest), default=0)
        return msgspec.structs.replace(plan, begin=begin) if begin else plan

    def run(self, task: Task) -> Run:
        snapshot = self._snapshots.get(task.plan.begin)
        return self._runner.run(task) if snapshot is None else self._begun(task, snapshot)

    def _begun(self, task: Task, snapshot: Snapshot) -> Run:
        run = self._runner.run(msgspec.structs.replace(task, restored=snapshot))
        return run if run.problem else joined(self._reference.run, run, snapshot)


def joined(reference: Run, run: Run, snapshot: Snapshot) -> Run:
    """A run with what was before its beginning. The state at the beginning is its own: its operator started there."""
    counted, begin = snapshot.counted, snapshot.step + 1
    run.checkpoints = [*reference.checkpoints[: begin - 1], *run.checkpoints]
    run.changes = [*(item for item in reference.changes if item.revision <= snapshot.revision), *run.changes]
    run.exchanges = [*(item for item in reference.exchanges if item.number < counted.requests), *run.exchanges]
    run.deliveries = [*(item for item in reference.deliveries if item.time <= counted.time), *run.deliveries]
    run.exits = [*(item for item in reference.exits if item.time <= counted.time), *run.exits]
    for server, steps in reference.applications.items():
        before = {step for step in steps if step < begin}
        run.applications[server] = tuple(sorted({*before, *run.applications.get(server, ())}))
    return run
