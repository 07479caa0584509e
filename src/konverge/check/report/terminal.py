"""The report for a terminal: a line for each finding, the worst first, and what was and was not tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from konverge.check.budget import shown
from konverge.check.campaign import Outcome
from konverge.check.model import Alarm, Finding
from konverge.check.names import Names

Paint = Callable[[str, str], str]
"""A text, and what it means: "fail", "warn", "dim", "bold", "ok"."""

ALSO = 6
"""Details of a finding that are named."""

_MEANINGS = {"high": "fail", "medium": "warn", "low": "dim"}


def plain(text: str, meaning: str) -> str:
    return text


def lines(outcome: Outcome, files: Sequence[str] = (), paint: Paint = plain) -> Iterator[str]:
    """`files` are those that show the findings again, in the same order."""
    names = Names.of(outcome.base)
    for number, finding in enumerate(outcome.findings, 1):
        yield from _finding(number, finding, files[number - 1] if number <= len(files) else "", names, paint)
    if outcome.findings:
        yield ""
    yield headline(outcome)
    yield from (paint(line, "dim") for line in tested(outcome))


def _finding(number: int, finding: Finding, file: str, names: Names, paint: Paint) -> Iterator[str]:
    severity = paint(f"{finding.alarm.severity:<6}", _MEANINGS[finding.alarm.severity])
    yield f"{number:>3}. {severity} {visible(finding.sentence)}{paint(_seen(finding), 'dim')}"
    if finding.details:
        also = ", ".join(dict.fromkeys(names.in_text(_other(alarm, finding.alarm)) for alarm in finding.details[:ALSO]))
        more = f" and {len(finding.details) - ALSO} more" if len(finding.details) > ALSO else ""
        yield paint(f"            also: {visible(also)}{more}", "dim")
    if file:
        yield paint(f"            konverge check --replay {visible(file)}", "dim")


def _other(alarm: Alarm, first: Alarm) -> str:
    """What a detail is about: another object, or another field of the same one."""
    return alarm.field if alarm.field and alarm.object == first.object else alarm.object


def _seen(finding: Finding) -> str:
    times, repeats = finding.confirmed
    parts = [finding.alarm.oracle]
    if finding.runs > 1:
        parts.append(f"{finding.runs} runs")
    if repeats and times < repeats:
        parts.append(f"flaky: {times} of {repeats}")
    return f" ({', '.join(parts)})"


def headline(outcome: Outcome) -> str:
    counts = Counter(finding.alarm.severity for finding in outcome.findings)
    found = ", ".join(f"{counts[severity]} {severity}" for severity in ("high", "medium", "low") if counts[severity])
    runs = len(outcome.performed) + 2
    total = counted(len(outcome.findings), "finding")
    return f"{total}{f' ({found})' if found else ''} in {runs} runs, {shown(outcome.seconds)}"


def tested(outcome: Outcome) -> Iterator[str]:
    """What was tested and what was not, and why."""
    patterns = Counter(item.plan.pattern for item in outcome.performed)
    if patterns:
        yield "tested: " + ", ".join(f"{pattern} {count}" for pattern, count in sorted(patterns.items()))
    missed = sum(item.missed for item in outcome.performed)
    if missed:
        yield f"not tested: {counted(missed, 'plan')} whose moment did not come again"
    failed = Counter(item.problem for item in outcome.performed if item.problem)
    for problem, count in failed.items():
        yield f"not tested: {counted(count, 'plan')}: {visible(problem)}"
    if outcome.left_out:
        left = ", ".join(f"{pattern} {count}" for pattern, count in sorted(outcome.left_out.items()))
        yield f"not tested: {left} ({why_it_ended(outcome)})"
    if not outcome.base.setup.account:
        yield "not tested: permissions (the operator ran as administrator; --rbac gives it its own account)"
    if outcome.reference.varying:
        varying = len(outcome.reference.varying)
        what = "field that varies by itself" if varying == 1 else "fields that vary by themselves"
        yield f"not compared: {varying} {what}"
    for note in outcome.notes:
        yield f"note: {visible(note)}"


def why_it_ended(outcome: Outcome) -> str:
    """Why the search did not go on."""
    if outcome.interrupted:
        return "interrupted"
    return "--fail-fast ended the search" if outcome.stopped else "the budget ended; --budget gives more"


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "plan"), counted(2, "plan")
    ('1 plan', '2 plans')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Text of others without what a terminal would obey, in one line."""
    return "".join(char if char.isprintable() else "?" for char in text.replace("\n", " "))
