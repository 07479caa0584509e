"""The report for code scanners: SARIF 2.1.0. The location is the file of the custom resource."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from konverge.check.campaign import Outcome
from konverge.check.findings import group_of
from konverge.check.model import Finding
from konverge.check.report.terminal import visible

_LEVELS = {"high": "error", "medium": "warning", "low": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def report(outcome: Outcome, replays: Sequence[str], location: str, version: str) -> bytes:
    """`location` is the path of the sample or definition, as the user gave it."""
    oracles = sorted({finding.alarm.oracle for finding in outcome.findings})
    driver = {
        "name": "konverge check",
        "version": version,
        "rules": [{"id": oracle, "name": oracle, "shortDescription": {"text": oracle}} for oracle in oracles],
    }
    results = [_result(*item, location) for item in zip(outcome.findings, replays, strict=True)]
    data = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def _result(finding: Finding, replay: str, location: str) -> dict[str, Any]:
    group = "\0".join(group_of(finding.alarm))
    return {
        "ruleId": finding.alarm.oracle,
        "level": _LEVELS[finding.alarm.severity],
        "message": {"text": f"{visible(finding.sentence)} (konverge check --replay {visible(replay)})"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": PurePath(location).as_posix()},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {"konverge/v1": hashlib.sha256(group.encode()).hexdigest()[:32]},
    }
