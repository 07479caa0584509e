"""Our controllers and the real ones, on our API server and on the real one: the same scenarios, the same states.

The scenarios were recorded with the fourth pair, the real controllers on the real server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.clusters import ours_on_ours, ours_on_real, real_on_ours

CORPUS = Path(__file__).parent.parent / "conformance"
SCENARIOS = ("public/controllers", "own-controllers")
RECORDED = {("gc/new-namespace", "look"), ("gc/new-namespace", "account-comes-back")}
"""These compare the certificate of the recorder's own authority."""
READINESS_GATES = {("service/not-ready", "create")}
"""Here our kubelet does more than kwok: a pod whose readiness gate is never opened is not ready."""


@pytest.mark.limit(900)
@pytest.mark.blocking("waits for a child process that does nothing but this")
@pytest.mark.spec("R-32", "R-33", "R-34", "R-35", "R-36", "R-37", "R-38", "R-39", "R-40", "R-41", "S-16")
@pytest.mark.parametrize(
    ("pair", "different"),
    [(ours_on_ours, RECORDED | READINESS_GATES), (ours_on_real, RECORDED | READINESS_GATES), (real_on_ours, RECORDED)],
)
def test_the_same_scenarios_end_in_the_same_states(
    pair: Callable[[Path, Path], Any], different: set[tuple[str, str]], binaries: Path, tmp_path: Path
) -> None:
    with pair(binaries, tmp_path) as kubeconfig:
        for corpus in SCENARIOS:
            failures = mismatches(kubeconfig, corpus, tmp_path / "result.json")
            wrong = [failure for failure in failures if (failure["scenario"], failure["step"]) not in different]
            assert not wrong, f"{corpus}: {json.dumps(wrong, indent=1)}"


def mismatches(kubeconfig: Path, corpus: str, result: Path) -> list[dict[str, Any]]:
    command = ["check-controllers", "--kubeconfig", kubeconfig, "-j", "6", "--json", result, CORPUS / corpus]
    done = subprocess.run([sys.executable, CORPUS / "replay.py", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failures: list[dict[str, Any]] = json.loads(result.read_text())["failures"]
    return failures
