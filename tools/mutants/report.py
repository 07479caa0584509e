"""What came out: progress, the rate of each package, and the survivors."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from tools.mutants.source import Mutant

KILLED = ("killed", "timeout")
ALIVE = ("survived", "no test")


class Report:
    """`survivors` is the file that names them, complete as far as the run has come."""

    def __init__(self, total: int, source: str, survivors: Path | None = None) -> None:
        self._total = total
        self._source = source
        self._survivors = survivors
        self._start = time.monotonic()
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._alive: list[tuple[Mutant, str]] = []
        self._done = 0

    def done(self, mutant: Mutant, outcome: str, test: str) -> None:
        self._done += 1
        self._outcomes[self._package(mutant)][outcome] += 1
        if outcome in ALIVE:
            self._alive.append((mutant, outcome))
            print(f"{_clear()}{outcome}: {mutant}", flush=True)
            self._write_survivors()
        spent = time.monotonic() - self._start
        left = spent / self._done * (self._total - self._done)
        if sys.stdout.isatty() or self._done % 50 == 0:
            ending = "" if sys.stdout.isatty() else "\n"
            text = f"{self._done}/{self._total} mutants, {len(self._alive)} alive, about {left / 60:.0f} min left"
            print(f"{_clear()}{text}", end=ending, flush=True)

    def print_summary(self) -> None:
        print(_clear(), end="")
        for package, outcomes in self._outcomes.items():
            killed, valid = _counts(outcomes)
            detail = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            print(f"{package}: {_percent(killed, valid):.1f} % of {valid} mutants killed ({detail})")

    def _write_survivors(self) -> None:
        if self._survivors is not None:
            alive = sorted(self._alive, key=lambda entry: (entry[0].file, entry[0].number))
            text = "".join(f"{outcome}: {mutant}\n\n" for mutant, outcome in alive)
            self._survivors.write_text(text, encoding="utf-8")

    def below(self, bar: float, least: int) -> bool:
        """Whether a package with at least so many mutants is below the bar."""
        low = False
        for package, outcomes in self._outcomes.items():
            killed, valid = _counts(outcomes)
            if valid >= least and _percent(killed, valid) < bar:
                print(f"{package} is below {bar:.0f} %: kill the survivors, or accept them with a reason")
                low = True
        return low

    def _package(self, mutant: Mutant) -> str:
        return Path(mutant.file).relative_to(self._source).parts[0]


def _counts(outcomes: Counter[str]) -> tuple[int, int]:
    killed = sum(outcomes[outcome] for outcome in KILLED)
    return killed, killed + sum(outcomes[outcome] for outcome in ALIVE)


def _percent(killed: int, valid: int) -> float:
    return 100 * killed / valid if valid else math.nan


def _clear() -> str:
    return "\r\x1b[K" if sys.stdout.isatty() else ""
