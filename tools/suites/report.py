"""What a suite came to, as a row of the table in docs/conformance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Count:
    suite: str
    unit: str
    passed: int
    failed: tuple[str, ...]
    known: tuple[str, ...] = ()
    """What failed and is known to."""

    def row(self) -> str:
        verdict = f"{self.passed} of {self.passed + len(self.failed) + len(self.known)} {self.unit}"
        named = [*self.failed, *(f"{name} (known)" for name in self.known)]
        return f"| {self.suite} | {verdict} | {', '.join(named) or 'nothing'} |"


def table(counts: Sequence[Count]) -> str:
    return "\n".join(["| suite | passed | failed |", "|---|---|---|", *(count.row() for count in counts)])
