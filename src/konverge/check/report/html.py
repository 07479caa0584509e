"""The report as one HTML file, which needs no network.

Everything of others (names, values, logs) goes into the page as JSON and from there into text nodes; a policy in the
page allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from konverge.check.campaign import Outcome
from konverge.check.differences import differences
from konverge.check.findings import Evidence
from konverge.check.model import Alarm, Apply, Finding, Step
from konverge.check.names import Names
from konverge.check.redaction import shown_object, shown_value
from konverge.check.report import terminal
from konverge.check.report.coverage import tables
from konverge.check.report.lanes import divergence, lanes_of

LAST_LINES = 200


def page(outcome: Outcome, replays: Sequence[str], version: str) -> str:
    """`replays` are the files that show the findings again."""
    folder = files(__package__)
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    parts = {
        "title": escape(terminal.visible(f"konverge check: {_subject(outcome)}")),
        "policy": _digest(script),
        "style": folder.joinpath("page.css").read_text(encoding="utf-8"),
        "script": script,
        "data": _embedded(data(outcome, replays, version)),
    }
    template = folder.joinpath("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(value: Any) -> str:
    """JSON that cannot end its script element, nor begin a comment in it."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def data(outcome: Outcome, replays: Sequence[str], version: str) -> dict[str, Any]:
    """What the page shows."""
    names = Names.of(outcome.base)
    references: list[Any] = []
    positions: dict[tuple[int, int], int] = {}
    findings = []
    for finding, evidence, replay in zip(outcome.findings, outcome.evidence, replays, strict=True):
        reference = evidence.reference.run
        key = id(reference), len(evidence.run.steps)
        if key not in positions:
            positions[key] = len(references)
            references.append(lanes_of(reference, names, key[1]))
        findings.append({**_finding(finding, evidence, names, replay), "reference": positions[key]})
    return {
        "subject": _subject(outcome),
        "version": version,
        "headline": terminal.headline(outcome),
        "tested": list(terminal.tested(outcome)),
        "varying": list(outcome.reference.varying),
        "findings": findings,
        "references": references,
        "coverage": tables(outcome),
    }


def _subject(outcome: Outcome) -> str:
    subject = outcome.base.subject
    return subject.target or " ".join(subject.command) or "an operator"


def _finding(finding: Finding, evidence: Evidence, names: Names, replay: str) -> dict[str, Any]:
    return {
        "sentence": finding.sentence,
        "severity": finding.alarm.severity,
        "oracle": finding.alarm.oracle,
        "object": names.in_text(finding.alarm.object),
        "field": finding.alarm.field,
        "step": finding.alarm.step,
        "expected": _value(finding.alarm, finding.alarm.expected),
        "actual": _value(finding.alarm, finding.alarm.actual),
        "runs": finding.runs,
        "patterns": list(finding.patterns),
        "confirmed": list(finding.confirmed),
        "hit": evidence.run.hit,
        "details": [_detail(alarm, names) for alarm in finding.details],
        "replay": f"konverge check --replay {replay}",
        "lanes": lanes_of(evidence.run, names),
        "divergence": divergence(evidence.run, evidence.reference.run),
        "log": evidence.run.log[-LAST_LINES:],
        "resource": _resource(evidence.run.steps),
    }


def _value(alarm: Alarm, value: Any) -> str:
    return "" if value is None else shown_value(alarm.object.partition(" ")[0], alarm.field, value)


def _detail(alarm: Alarm, names: Names) -> dict[str, str]:
    return {
        "severity": alarm.severity,
        "text": f"{alarm.oracle}: {names.in_text(alarm.object)} {alarm.field}".rstrip(),
        "expected": _value(alarm, alarm.expected)[:400],
        "actual": _value(alarm, alarm.actual)[:400],
    }


def _resource(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The user's objects, step by step: the whole at first, then what changed."""
    shown: list[dict[str, Any]] = []
    before: dict[tuple[str, str], dict[str, Any]] = {}
    for step in steps:
        entry: dict[str, Any] = {"step": step.name, "objects": []}
        for action in step.actions:
            if not isinstance(action, Apply):
                entry["objects"].append({"name": f"delete {action.kind} {action.name}"})
                before.pop((action.kind, action.name), None)
                continue
            kind, name = action.object["kind"], action.object["metadata"]["name"]
            obj = shown_object(kind.lower() + "s", action.object)
            entry["objects"].append(_applied(f"{kind} {name}", before.get((kind, name)), obj))
            before[kind, name] = obj
        shown.append(entry)
    return shown


def _applied(name: str, before: dict[str, Any] | None, obj: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return {"name": f"create {name}", "text": msgspec.json.format(msgspec.json.encode(obj), indent=2).decode()}
    changed = [
        (path, shown_value("", path, old), shown_value("", path, new)) for path, old, new in differences(before, obj)
    ]
    return {"name": f"change {name}", "diff": changed}
