"""A kube-rs operator and its user on the embedded server, and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.clients import programs


@pytest.fixture(scope="module")
def program() -> Path:
    return programs.rust_program()


@pytest.mark.spec("S-01")
@pytest.mark.limit(600)  # begins first: the program is built for it, which takes minutes on a new machine
def test_an_operator_runs_and_is_used(program: Path, either_kubeconfig: Path) -> None:
    steps = programs.run(program, kubeconfig=either_kubeconfig)
    assert steps == ["install", "reconcile", "repair", "conflict", "scale", "watch", "finalizer", "delete"]
