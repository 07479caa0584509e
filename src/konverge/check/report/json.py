"""The report for machines: JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from konverge.check.campaign import Outcome
from konverge.check.model import Alarm, Finding
from konverge.check.redaction import shown_alarm


def report(outcome: Outcome, files: list[str], version: str) -> bytes:
    patterns = Counter(item.plan.pattern for item in outcome.performed)
    data = {
        "konverge": version,
        "subject": outcome.base.subject.target or list(outcome.base.subject.command),
        "seed": outcome.base.seed,
        "seconds": round(outcome.seconds, 2),
        "interrupted": outcome.interrupted,
        "findings": [_finding(*item) for item in zip(outcome.findings, files, strict=True)],
        "tested": dict(patterns),
        "missed": sum(item.missed for item in outcome.performed),
        "leftOut": outcome.left_out,
        "notes": outcome.notes,
        "varying": list(outcome.reference.varying),
        "searched": round(outcome.searched, 2),
        "cpu": round(sum(item.cpu for item in outcome.performed), 1),
        "cpuPerPlan": round(sum(item.cpu for item in outcome.performed) / max(1, len(outcome.performed)), 3),
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def _finding(finding: Finding, file: str) -> dict[str, Any]:
    return {
        **_alarm(finding.alarm),
        "sentence": finding.sentence,
        "runs": finding.runs,
        "patterns": list(finding.patterns),
        "confirmed": list(finding.confirmed),
        "perturbations": len(finding.task.plan.perturbations),
        "steps": len(finding.task.plan.steps or finding.task.steps),
        "after": round(finding.after, 1),
        "details": [_alarm(alarm) for alarm in finding.details],
        "replay": file,
    }


def _alarm(alarm: Alarm) -> dict[str, Any]:
    shown = shown_alarm(alarm)
    return {
        "oracle": alarm.oracle,
        "severity": alarm.severity,
        "object": alarm.object,
        "field": alarm.field,
        "step": alarm.step,
        "expected": shown.expected,
        "actual": shown.actual,
    }
