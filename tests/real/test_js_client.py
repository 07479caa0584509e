"""@kubernetes/client-node on the embedded server, and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.clients import programs


@pytest.fixture(scope="module")
def program() -> Path:
    return programs.js_program()


@pytest.mark.spec("S-01")
def test_an_operator_runs_and_is_used(program: Path, either_kubeconfig: Path) -> None:
    steps = programs.run("node", program, kubeconfig=either_kubeconfig)
    assert steps == ["apply", "scale", "conflict", "operator", "watch", "delete"]
