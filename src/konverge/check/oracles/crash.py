"""The operator does not end by itself, and does not panic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from konverge.check.model import Alarm, Exit, Run
from konverge.check.oracles.history import news
from konverge.check.reference import Reference

PANIC = re.compile(
    r"panic: .*|.*runtime error: .*|.*Observed a panic.*|fatal error: .*|thread '.*' panicked.*"
    r"|.*NullPointerException.*|.*UnhandledPromiseRejection.*|.*Segmentation fault.*"
)
MISTAKE = re.compile(
    r".*\b(?:TypeError|KeyError|AttributeError|IndexError|NameError|UnboundLocalError|ZeroDivisionError"
    r"|AssertionError|RecursionError|ReferenceError|UnpackError)\b.*"
)
"""The last line of a traceback that shows a mistake in the program, and not an answer of the API server."""

LOOP = 3
"""So many ends in one step: it will never go on."""

_ON_PURPOSE = re.compile(r"leader election lost|leadership was lost|lost leadership|leaderelection lost", re.IGNORECASE)


def crash(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per way to end, and per panic that was caught."""
    return news(_crashes, run, reference)


def _crashes(run: Run) -> Iterator[Alarm]:
    by_step: dict[int, list[Exit]] = {}
    for end in run.exits:
        if not _ON_PURPOSE.search(end.error):
            by_step.setdefault(end.step, []).append(end)
    for step, ends in by_step.items():
        why = _cause(ends[-1].error) or f"code {ends[-1].code}"
        times = f" {len(ends)} times" if len(ends) > 1 else ""
        yield Alarm(
            oracle="crash",
            severity="high" if len(ends) >= LOOP or PANIC.search(ends[-1].error) else "medium",
            object="operator",
            field=_common(why),
            sentence=f"the operator ends by itself{times}: {why}",
            step=run.steps[step].name if step < len(run.steps) else "",
            actual=len(ends),
        )
    for line in _panics(run.log):
        yield Alarm(
            oracle="crash",
            severity="medium",
            object="operator",
            field=_common(line),
            sentence=f"the operator's log shows a mistake in it: {line}",
        )


def _panics(log: list[str]) -> Iterator[str]:
    traced = False
    for line in log:
        text = re.sub(r"^\d+: ", "", line).strip()
        traced = traced or "Traceback (most recent call last)" in text
        if PANIC.fullmatch(text) or (traced and MISTAKE.fullmatch(text) and not text.startswith("File ")):
            traced = False
            yield text[:200]


def _cause(error: str) -> str:
    """As the log says it: the same panic is said once."""
    lines = [line.strip() for line in _ENDED.sub("", error).splitlines() if line.strip()]
    return next((line for line in lines if PANIC.fullmatch(line)), lines[-1] if lines else "")[:200]


_ENDED = re.compile(r"^it ended with exit code -?\d+: ")
"""What a child process adds in front of what its log says."""


def _common(text: str) -> str:
    """A cause without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text.replace(" [recovered]", ""))[:100]
