"""Ruby's kubeclient on the embedded server, and on the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.clients import programs


@pytest.mark.spec("S-61")
def test_objects_and_definitions_are_used(either_kubeconfig: Path) -> None:
    steps = programs.run(*programs.ruby_program(), kubeconfig=either_kubeconfig)
    assert steps == ["lists", "conflict", "patches", "missing", "watch", "delete"]
