"""What a release says of itself: notes of the version that it has, Pythons that are tested, targets that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tools import changelog, dist

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
pytestmark = pytest.mark.spec("O-90")
WRITTEN = """# Changelog

## [Unreleased]

### Changed
- Not yet.

## [0.2.0] - 2026-12-01

### Added
- A thing.

## [0.1.0]

- The first.
"""


def test_the_notes_of_a_version_are_its_part_of_the_changelog() -> None:
    assert changelog.notes(WRITTEN, "0.2.0") == "### Added\n- A thing."


@pytest.mark.parametrize(
    ("version", "why"), [("0.1.0", "has no date"), ("0.3.0", "has no part"), ("0.2", "has no part")]
)
def test_a_version_without_notes_or_date_is_not_released(version: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        changelog.notes(WRITTEN, version)


def test_a_tag_cannot_release_another_version_than_the_package_has() -> None:
    with pytest.raises(SystemExit, match=f"pyproject.toml says {re.escape(PROJECT['version'])}"):
        changelog.main("99.0.0")


def test_the_changelog_has_a_part_for_what_comes() -> None:
    assert changelog._HEADING.findall((ROOT / "CHANGELOG.md").read_text())[0] == ("Unreleased", "")


def test_every_supported_python_is_tested() -> None:
    claimed = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    assert workflow["jobs"]["fast"]["strategy"]["matrix"]["python"] == claimed
    assert claimed[0] == PROJECT["requires-python"].removeprefix(">=")


def test_the_workflows_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text())["jobs"]
        commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
        assert set(re.findall(r"\bmake ([a-z-]+)", "\n".join(commands))) <= targets, path


def test_what_a_release_is_tried_with_is_pinned_by_hash() -> None:
    lines = dist.pinned(dist.DEVELOPMENT.read_text(), dist.PYTEST).splitlines()
    assert [line.partition("==")[0] for line in lines if not line.startswith(" ")] == sorted(dist.PYTEST)
    assert sum("--hash=sha256:" in line for line in lines) >= 2 * len(dist.PYTEST)
    with pytest.raises(SystemExit, match="make lock"):
        dist.pinned("pytest==1 \\\n    --hash=sha256:0\n", dist.PYTEST)


def test_make_up_installs_no_development_tools() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^up: \$\(VENV\)/\.installed ", makefile, re.MULTILINE)
    recipe = makefile.split("$(VENV)/.installed:", 1)[1].split("\n\n", 1)[0]
    assert " -r constraints.txt" not in recipe
