"""The report of a benchmark: figures, bars (limits that we must meet), one headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

OURS = "konverge"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of one peer: the median of its rounds."""

    metric: str
    peer: str
    value: float
    unit: str
    rounds: tuple[float, ...] = ()

    @classmethod
    def of(cls, metric: str, peer: str, rounds: Sequence[float], unit: str) -> Figure:
        return cls(metric, peer, median(rounds), unit, tuple(rounds))


@dataclass(frozen=True, slots=True)
class Bar:
    """A promise of an issue: our figure is at most `times` the best (or the named) peer's."""

    metric: str
    times: float
    against: str = ""
    """A peer; empty for the best of them."""
    text: str = ""


@dataclass(slots=True)
class Report:
    """The outcome of one benchmark."""

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Promises that are no ratio and were not kept."""

    def ours(self, metric: str) -> Figure:
        return next(figure for figure in self.figures if figure.metric == metric and figure.peer == OURS)

    def rival(self, bar: Bar) -> Figure:
        """The figure that a bar is measured against."""
        others = [figure for figure in self.figures if figure.metric == bar.metric and figure.peer != OURS]
        named = [figure for figure in others if not bar.against or figure.peer == bar.against]
        if not named:
            raise LookupError(f"{self.name}: no peer to measure {bar.metric!r} against")
        return min(named, key=lambda figure: figure.value)

    def ratio(self, bar: Bar) -> float:
        return self.ours(bar.metric).value / self.rival(bar).value

    @property
    def met(self) -> bool:
        return not self.failures and all(self.ratio(bar) <= bar.times for bar in self.bars)

    def text(self) -> str:
        lines = [f"== {self.title}"]
        for metric in dict.fromkeys(figure.metric for figure in self.figures):
            lines += self._table(metric)
        lines += [f"  {note}" for note in self.notes]
        lines += [self._verdict(bar) for bar in self.bars]
        lines += [f"  NOT MET: {failure}" for failure in self.failures]
        return "\n".join(lines)

    def _table(self, metric: str) -> list[str]:
        rows = sorted((figure for figure in self.figures if figure.metric == metric), key=lambda f: f.value)
        ours = next((figure.value for figure in rows if figure.peer == OURS), None)
        lines = [f"  {metric}"]
        for row in rows:
            ratio = f"{row.value / ours:8.2f} ×" if ours else ""
            lines.append(f"    {row.peer:<28}{row.value:>12.1f} {row.unit:<4}{ratio}")
        return lines

    def _verdict(self, bar: Bar) -> str:
        ratio, rival = self.ratio(bar), self.rival(bar)
        word = "met" if ratio <= bar.times else "NOT MET"
        return f"  bar {word}: {bar.metric}: {ratio:.3f} × {rival.peer}, allowed {bar.times:g}. {bar.text}".rstrip()

    def headline(self) -> str:
        parts = [f"{bar.metric} {self.ratio(bar):.2f} × {self.rival(bar).peer} (≤ {bar.times:g})" for bar in self.bars]
        return f"{self.name}: {'met' if self.met else 'NOT MET'}: {', '.join(parts)}"

    def data(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "name": self.name,
            "met": self.met,
            "headline": self.headline(),
            "figures": [
                {"metric": f.metric, "peer": f.peer, "value": f.value, "unit": f.unit, "rounds": list(f.rounds)}
                for f in self.figures
            ],
            "bars": [
                {"metric": bar.metric, "allowed": bar.times, "ratio": self.ratio(bar), "against": self.rival(bar).peer}
                for bar in self.bars
            ],
            "notes": self.notes,
        }
