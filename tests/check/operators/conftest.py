"""What `make check-operators` says at its end: how much of each operator was run, and what there was no time for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from konverge.check.campaign import Outcome

Performed = Callable[[str, Outcome], None]
PLANS, CPU = "plans: ", "cpu: "


@pytest.fixture
def performed(record_property: Callable[[str, object], None]) -> Performed:
    """Notes what a part did, and the CPU time that it took."""
    begin = time.process_time()

    def note(kind: str, outcome: Outcome) -> None:
        record_property(PLANS + kind, len(outcome.performed))
        record_property(CPU + kind, time.process_time() - begin)

    return note


def summary(stats: dict[str, list[Any]]) -> Iterator[str]:
    """A line for each kind of plans, and one for what was skipped."""
    reports = [report for outcome in ("passed", "failed") for report in stats.get(outcome, ())]
    parts: Counter[str] = Counter()
    values: Counter[str] = Counter()
    for name, value in (item for report in reports for item in report.user_properties):
        values[name] += value if name.startswith((PLANS, CPU)) else 0
        parts[name] += 1
    for name in sorted(name for name in parts if name.startswith(PLANS)):
        kind = name.removeprefix(PLANS)
        plans, cpu = values[name], values[CPU + kind]
        each = cpu / max(plans, 1)
        yield f"{kind}: {plans} plans in {parts[name]} parts, {cpu:.0f} s of CPU time ({each:.1f} s each)"
    skipped = [report.nodeid for report in stats.get("skipped", ()) if "test_lane.py" in report.nodeid]
    if skipped:
        yield f"skipped, since the time of this run was used up: {len(skipped)} parts"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = list(summary(terminalreporter.stats))
    if lines:
        terminalreporter.section("konverge check of our operators")
        for line in lines:
            terminalreporter.write_line(line)
