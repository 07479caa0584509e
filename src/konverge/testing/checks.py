"""The fixture `konverge_check`: a check of an operator as a test.

    def test_operator(konverge_check):
        konverge_check(manager, sample="cr.yaml").assert_no_findings()

Runs are in this process, on virtual time, one after the other, for as long as the budget lasts. The same seed gives the
same runs, so a finding shows again when the test runs again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.manifests import read_objects
from konverge.check.model import SEVERITIES, Finding, Setup, Severity, Subject
from konverge.check.planning import planner_for
from konverge.check.report import terminal
from konverge.check.report.files import write_findings
from konverge.check.subjects import InThisProcess, declaration_of
from konverge.check.workload import default
from konverge.operators.loading import as_operator

if TYPE_CHECKING:
    from konverge.check.operator import Declaration

BUDGET = 20.0
"""Seconds of a test: the plans of most value, and no more."""

Sample = str | Path | dict[str, Any]


class CheckResult:
    """What a check found. `outcome` has everything."""

    def __init__(self, outcome: Outcome, files: Sequence[Path], again: str) -> None:
        self.outcome = outcome
        self.files = list(files)
        self._again = again

    @property
    def findings(self) -> list[Finding]:
        """The worst first."""
        return self.outcome.findings

    def assert_no_findings(self, at_least: Severity = "low") -> None:
        """Raises AssertionError with a sentence for each finding of this severity or worse, and how to see it again."""
        worst = SEVERITIES[: SEVERITIES.index(at_least) + 1]
        if not any(finding.alarm.severity in worst for finding in self.findings):
            return
        replays = [str(path) for path in self.files] if not self._again else []
        lines = [*terminal.lines(self.outcome, replays), *([f"again: {self._again}"] if self._again else [])]
        raise AssertionError("\n".join(lines))


class KonvergeCheck:
    """What the fixture is. Call it with an operator: a Manager, controllers, or a function that returns either."""

    def __init__(self, folder: Path, test: str, seed: int = 0) -> None:
        """`folder` is where files of findings go; `test` is the test's name, as pytest takes it."""
        self._folder, self._test, self._seed = folder, test, seed

    def __call__(
        self,
        what: Declaration,
        *,
        sample: Sample | Sequence[Sample] | None = None,
        only: Sequence[str] = (),
        budget: float = BUDGET,
        nodes: int = 1,
    ) -> CheckResult:
        """Checks an operator with a sample: a file, or an object as a dict; several are created in their order.

        `only` chooses kinds of faults (`["crash", "stale"]`), `budget` is in seconds. Raises CouldNotTest.
        """
        operator = as_operator(what)
        given = [sample] if isinstance(sample, str | Path | dict) else list(sample or ())
        objects = [obj for item in given for obj in _objects(item)] or operator.sample_objects()
        setup = Setup(objects=tuple(operator.definitions()), nodes=nodes)
        campaign = Campaign(
            Subject(target=importable(what)),
            setup,
            default(objects, setup.objects),
            InThisProcess(what if callable(what) else declaration_of(operator)),
            Options(only=tuple(only), budget=budget, seed=self._seed),
            planner=planner_for(objects, setup.objects, setup.namespace),
        )
        outcome = _apart(campaign)
        files = write_findings(outcome, self._folder, "")
        return CheckResult(outcome, files, "" if importable(what) else f"pytest {self._test!r}")


def _objects(sample: Sample) -> list[dict[str, Any]]:
    return [sample] if isinstance(sample, dict) else read_objects([Path(sample)])


def _apart(campaign: Campaign) -> Outcome:
    """Every run has a loop of its own: in an `async def` test, that needs a thread without one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return campaign.check()
    with ThreadPoolExecutor(1, "check") as pool:
        return pool.submit(campaign.check).result()


def importable(what: Any) -> str:
    """`module:attribute` under which a command line finds an operator as well; empty if there is none."""
    name = getattr(what, "__qualname__", "")
    if name and "<locals>" not in name and getattr(what, "__module__", ""):
        return f"{what.__module__}:{name}"
    for module in list(sys.modules.values()):
        names = [key for key, value in list(getattr(module, "__dict__", {}).items()) if value is what]
        if names and not module.__name__.rpartition(".")[2].startswith(("test_", "conftest", "__main__")):
            return f"{module.__name__}:{names[0]}"
    return ""
