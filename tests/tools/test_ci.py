"""What CI runs: the script itself, with a `make` that only notes what it was asked for."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.check.operators.lane import FAULTS, OPERATIONS, chosen

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
MAKE = """#!/bin/sh
echo "${KONVERGE_UNTIL:--} $*" >>"$NOTES"
test "$1" != "${FAILING:-}"
"""
ALLOWED = 50 * 60
LEFT = 5 * 60
"""Seconds for what has begun when the last limit is reached."""


def commit(clone: Path, message: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "commit", "--quiet", "--allow-empty", "--message", message], cwd=clone, check=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of one commit."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    for name, text in (("make", MAKE), ("notes", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "make").chmod(0o755)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit(tmp_path, "one")
    return tmp_path


def run(clone: Path, failing: str = "") -> int:
    """Its exit code, with a target that fails."""
    given = {"PATH": f"{clone}:{os.environ['PATH']}", "NOTES": str(clone / "notes"), "FAILING": failing}
    environment = {**os.environ, **given}
    environment.pop("KONVERGE_UNTIL", None)
    return subprocess.run(["bash", ".ci/run"], cwd=clone, env=environment, check=False).returncode


def asked(clone: Path) -> list[tuple[str, str]]:
    """The limit of each call of make, or "-", and its arguments."""
    assert run(clone) == 0
    lines = (clone / "notes").read_text(encoding="utf-8").splitlines()
    return [(limit, arguments) for limit, _, arguments in (line.partition(" ") for line in lines)]


def test_every_lane_runs_and_those_that_may_take_long_have_a_limit(clone: Path) -> None:
    began = int(time.time())
    calls = asked(clone)
    targets = [arguments.split()[0] for _, arguments in calls]
    always = ["venv", "lint", "audit", "test", "console-test"]
    assert targets == [*always, "real", "seeds", "check-operators", "mutants-changed"]
    assert [limit for limit, arguments in calls if arguments in (*always, "mutants-changed")] == ["-"] * 6
    limits = [int(limit) - began for limit, _ in calls if limit != "-"]
    assert limits == sorted(set(limits))
    assert limits[-1] <= ALLOWED - LEFT + (time.time() - began)


def test_whatever_fails_ends_it(clone: Path) -> None:
    for _, arguments in asked(clone):
        target = arguments.split()[0]
        (clone / "notes").write_text("", encoding="utf-8")
        assert run(clone, failing=target) != 0, target
        assert (clone / "notes").read_text(encoding="utf-8").splitlines()[-1].split()[1] == target


@pytest.mark.spec("K-94")
def test_the_commit_says_which_slice_of_the_operators_is_checked(clone: Path) -> None:
    def slice_of_run() -> str:
        (clone / "notes").write_text("", encoding="utf-8")
        (arguments,) = (arguments for _, arguments in asked(clone) if arguments.startswith("check-operators"))
        return arguments.removeprefix("check-operators SLICE=")

    first = slice_of_run()
    for parts in (FAULTS, OPERATIONS):
        assert [operator for operator, *_ in chosen(parts, first)] == ["nacos", "wukong"]
    assert slice_of_run() == first, "a run can be repeated"
    commit(clone, "two")
    assert slice_of_run() != first
