"""The command on a small operator in Go, as its users would type it: nothing is found in it, its mutants are found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.limit(600)]

FOLDER = Path(__file__).parents[3] / "bench" / "check" / "go-operator"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go")
    built = tmp_path_factory.mktemp("go") / "box-operator"
    done = subprocess.run([go, "build", "-o", str(built), "."], cwd=FOLDER, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the small operator cannot be built: {done.stderr[-300:]}")
    return built


def checked(program: Path, folder: Path, mutant: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of `konverge check`, and what it writes for machines."""
    out = folder / "out.json"
    command = [sys.executable, "-m", "konverge.cli.main", "check", "--operator", str(FOLDER / "check.toml")]
    environment = {**os.environ, "BOX_OPERATOR": str(program), "MUTANT": mutant}
    done = subprocess.run(
        [*command, "--fail-on", "medium", "--report", str(folder), "--json", str(out), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=540,
    )
    assert out.exists(), done.stderr
    written: dict[str, Any] = json.loads(out.read_text())
    return done.returncode, written


def above_low(written: dict[str, Any]) -> list[str]:
    return [item["sentence"] for item in written["findings"] if item["severity"] != "low"]


@pytest.mark.spec("K-44", "K-51")
def test_nothing_is_found_in_the_small_operator(program: Path, tmp_path: Path) -> None:
    code, written = checked(program, tmp_path, "", "--only", "crash", "--budget", "20s")
    assert above_low(written) == []
    assert code == 0


@pytest.mark.spec("K-44", "K-51")
def test_a_record_that_is_never_removed_is_found(program: Path, tmp_path: Path) -> None:
    code, written = checked(program, tmp_path, "cleanup-skipped", "--only", "crash", "--budget", "5s")
    assert code == 1
    assert any("small-register" in sentence for sentence in above_low(written))
