"""The files of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from konverge.check import replay
from konverge.check.campaign import Outcome
from konverge.check.report import html, json, junit, sarif


def write_findings(outcome: Outcome, folder: Path, version: str) -> list[Path]:
    """A file that shows it again for each finding; those of an earlier check are removed."""
    if folder.is_dir():
        for old in folder.glob("finding-*.json"):
            old.unlink()
    paths = paths_of(outcome, folder)
    for path, finding, evidence in zip(paths, outcome.findings, outcome.evidence, strict=True):
        folder.mkdir(parents=True, exist_ok=True)
        replay.write(path, replay.replay_of(finding, evidence, version))
    return paths


def paths_of(outcome: Outcome, folder: Path) -> list[Path]:
    """Where the file of each finding is, or will be."""
    return [folder / f"finding-{number}.json" for number in range(1, len(outcome.findings) + 1)]


def write_json(outcome: Outcome, paths: Sequence[Path], to: Path, version: str) -> None:
    _write(to, json.report(outcome, [str(path) for path in paths], version))


def write_junit(outcome: Outcome, paths: Sequence[Path], to: Path) -> None:
    _write(to, junit.report(outcome, [str(path) for path in paths]))


def write_sarif(outcome: Outcome, paths: Sequence[Path], to: Path, location: str, version: str) -> None:
    _write(to, sarif.report(outcome, [str(path) for path in paths], location, version))


def _write(to: Path, data: bytes) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(data)


def write_page(outcome: Outcome, paths: Sequence[Path], folder: Path, version: str) -> Path:
    """The whole report, in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(html.page(outcome, [str(item) for item in paths], version), encoding="utf-8")
    return path
