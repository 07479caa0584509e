"""An acknowledged write survives kill -9 at any moment (see crashes.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crashes.py")


@pytest.mark.spec("S-14", "S-05")
def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "40", "7"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("40 kills")
