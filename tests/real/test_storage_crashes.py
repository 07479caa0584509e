"""The long run of kill -9: hundreds of kills (tests/apiserver/storage/crashes.py says what is checked)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "apiserver/storage/crashes.py"


@pytest.mark.spec("S-14")
@pytest.mark.limit(600)
def test_a_store_killed_hundreds_of_times_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "400", "11"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
