"""A controller-runtime suite on envtest, unchanged, with `konverge envtest-assets` in place of the real programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.clients import programs

STEPS = [
    *("start", "reconcile", "repair", "finalizer", "validation", "update", "scale"),
    *("patch", "apply", "delete", "users", "manager", "stop"),
]
PATIENCE = {f"KUBEBUILDER_CONTROLPLANE_{what}_TIMEOUT": "120s" for what in ("START", "STOP")}
"""envtest gives the programs twenty seconds to start."""


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    command = [sys.executable, "-m", "konverge.cli.main", "envtest-assets", str(folder)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == f"export KUBEBUILDER_ASSETS={folder}\n"
    return folder


@pytest.mark.spec("S-01")
def test_an_operators_suite_runs_on_the_drop_in(go_programs: Path, assets: Path) -> None:
    assert programs.run(go_programs / "envtest", KUBEBUILDER_ASSETS=str(assets), **PATIENCE) == STEPS


def test_the_same_suite_passes_on_the_real_programs(go_programs: Path, binaries: Path) -> None:
    """What the suite expects is what the real server does."""
    assert programs.run(go_programs / "envtest", KUBEBUILDER_ASSETS=str(binaries), **PATIENCE) == STEPS
