"""`konverge check --replay FILE`: one finding again, with what happened."""

from __future__ import annotations

from pathlib import Path

from konverge.check import replay as replays
from konverge.check.names import Names
from konverge.check.oracles import judge
from konverge.check.report import timeline
from konverge.check.report.terminal import visible
from konverge.check.subjects import of_task
from konverge.cli.check_listener import Shown
from konverge.cli.exit import UsageError


def replay(path: Path, shown: Shown) -> int:
    """1 if the finding shows again, 0 if it does not."""
    try:
        finding = replays.read(path)
        checked = of_task(finding.task)
        shown.progress("the finding runs again")
        with checked.runner(2 if checked.subject.command else 1) as runner:  # programs mostly wait
            evidence, same = replays.again(finding, runner, judge)
    except replays.ReplayError as error:
        raise UsageError(str(error)) from error
    shown.lines(map(visible, timeline.lines(evidence, Names.of(finding.task))))
    lines = ["", visible(finding.sentence)]
    if finding.redacted:
        lines.append(f"placeholders were used for {len(finding.redacted)} secret values")
    lines.append("It shows again." if same else "It does not show again: the operator behaves as without the fault.")
    if finding.redacted and not same:
        lines.append("If it depends on what a secret value says, and not on which are the same, run the check again.")
    shown.lines(lines)
    return 1 if same else 0
