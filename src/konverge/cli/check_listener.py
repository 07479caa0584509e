"""What `konverge check` prints while it works and at the end."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from konverge.check.campaign import Listener
from konverge.cli.progress import Progress
from konverge.cli.terminal import Paint, printable

if TYPE_CHECKING:
    from konverge.check.campaign import Outcome
    from konverge.check.model import Finding


class Shown(Listener):
    """Progress on standard error, findings on standard output. Inside its block this process logs nothing."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._paint = Paint.on()
        self._announced = False
        self._level = self._done = 0

    def __enter__(self) -> Self:
        self._level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.clear()
        logging.disable(self._level)

    def progress(self, text: str, done: int = 0, total: int = 0, most: float = math.inf) -> None:
        if done < self._done:
            self._progress = Progress()  # the pace of another phase says nothing
        self._done = done
        self._progress.show(text, done=done, total=total, unit="runs", most=most)

    def found(self, finding: Finding) -> None:
        """The first is printed at once: the rest of the run makes it smaller and surer."""
        if self._announced:
            return
        self._announced = True
        self._progress.clear()
        print(f"first finding ({finding.alarm.severity}): {printable(finding.sentence)}", file=sys.stderr)

    def report(self, outcome: Outcome, paths: Sequence[Path]) -> None:
        from konverge.check.report import terminal

        self._progress.clear()
        self.lines(terminal.lines(outcome, [str(path) for path in paths], self._paint))

    def lines(self, lines: Iterable[str]) -> None:
        self._progress.clear()
        for line in lines:
            print(line)
