"""Type checkers find the mistakes that users make, and none in the examples."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISTAKES = Path(__file__).with_name("mistakes.py")
DECLARATIONS = Path(__file__).with_name("declarations.py")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MARKED = {number for number, line in enumerate(MISTAKES.read_text().splitlines(), 1) if "# mistake" in line}

pytestmark = [pytest.mark.limit(300), pytest.mark.spec("O-92")]


def test_there_are_at_least_twenty() -> None:
    assert len(MARKED) >= 20


@pytest.mark.long
def test_mypy_flags_each_of_them_and_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(MISTAKES)], cwd=ROOT, capture_output=True, text=True
    )
    assert {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", done.stdout)} == MARKED, done.stdout


@pytest.mark.long
@pytest.mark.spec("R-51")
def test_mypy_knows_the_types_of_functions_in_declarations() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(DECLARATIONS)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command, from the registry of its language."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which brings pyright")
    folder = tmp_path_factory.mktemp("pyright")
    done = subprocess.run(
        ["npm", "install", "--silent", "--no-fund", "--no-audit", "pyright@1.1.414"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"pyright cannot be installed: {done.stderr.strip()[-200:]}")
    (folder / "checked").mkdir()
    for path in (MISTAKES, DECLARATIONS, *EXAMPLES):
        shutil.copy(path, folder / "checked")
    settings = folder / "pyrightconfig.json"
    settings.write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "pythonVersion": "3.11",
                "extraPaths": [str(ROOT / "src")],
                "include": ["checked"],
            }
        )
    )
    return [str(folder / "node_modules/.bin/pyright"), "--pythonpath", sys.executable, "--project", str(settings)]


@pytest.mark.real
def test_pyright_flags_each_of_them_and_nothing_in_the_examples(pyright: list[str]) -> None:
    done = subprocess.run([*pyright, "--outputjson"], capture_output=True, text=True)
    said = [entry for entry in json.loads(done.stdout)["generalDiagnostics"] if entry["severity"] == "error"]
    flagged = {entry["range"]["start"]["line"] + 1 for entry in said if Path(entry["file"]).name == MISTAKES.name}
    assert flagged >= MARKED
    assert [entry for entry in said if Path(entry["file"]).name != MISTAKES.name] == []
