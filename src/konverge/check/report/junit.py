"""The report for test runners: JUnit's XML. A case for each kind of fault that was tried, a failed one per finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from konverge.check.campaign import Outcome
from konverge.check.model import Finding
from konverge.check.report.terminal import tested, visible, why_it_ended


def report(outcome: Outcome, replays: Sequence[str]) -> bytes:
    patterns = Counter(item.plan.pattern for item in outcome.performed)
    found = {pattern for finding in outcome.findings for pattern in finding.patterns}
    fine = [pattern for pattern in sorted(patterns) if pattern not in found]
    suite = ElementTree.Element(
        "testsuite",
        name="konverge check",
        tests=str(len(fine) + len(outcome.findings) + len(outcome.left_out)),
        failures=str(len(outcome.findings)),
        errors="0",
        skipped=str(len(outcome.left_out)),
        time=f"{outcome.seconds:.3f}",
    )
    for finding, replay in zip(outcome.findings, replays, strict=True):
        _failure(suite, finding, replay)
    for pattern in fine:
        ElementTree.SubElement(
            suite, "testcase", classname="konverge.check", name=f"{pattern}: {patterns[pattern]} runs"
        )
    for left, count in sorted(outcome.left_out.items()):
        case = ElementTree.SubElement(suite, "testcase", classname="konverge.check", name=f"{left}: left out")
        ElementTree.SubElement(case, "skipped", message=f"{count} plans: {why_it_ended(outcome)}")
    ElementTree.SubElement(suite, "system-out").text = visible("; ".join(tested(outcome)))
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _failure(suite: ElementTree.Element, finding: Finding, replay: str) -> None:
    alarm = finding.alarm
    name = visible(f"{alarm.oracle}: {alarm.object} {alarm.field}".rstrip())
    case = ElementTree.SubElement(suite, "testcase", classname=f"konverge.check.{finding.patterns[0]}", name=name)
    failure = ElementTree.SubElement(case, "failure", type=alarm.severity, message=visible(finding.sentence))
    failure.text = f"again: konverge check --replay {visible(replay)}"
