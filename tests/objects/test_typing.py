"""Models are typed for their users: what `mypy --strict` says of a sample."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parent / "typing_sample.py"
ROOT = Path(__file__).parents[2]


def test_mypy_refuses_exactly_what_is_wrong() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(SAMPLE)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    reported = {
        int(line): code for line, code in re.findall(r"^[^:]+:(\d+): error: .*\[([a-z-]+)\]$", answer.stdout, re.M)
    }
    lines = enumerate(SAMPLE.read_text().splitlines(), 1)
    expected = {number: mark[1] for number, line in lines if (mark := re.search(r"# wrong: ([a-z-]+)$", line))}
    assert reported == expected, answer.stdout + answer.stderr
