"""The harness of the real lane: the real server starts, and its kubeconfig is an administrator's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.control_plane import ControlPlane
from tools.real_binaries import KUBERNETES


def test_the_real_server_answers_with_its_version(real_server: ControlPlane) -> None:
    assert real_server.get("/version")["gitVersion"] == KUBERNETES


def test_the_kubeconfig_is_an_administrators(real_server: ControlPlane, kubectl: Path) -> None:
    asked = [str(kubectl), "--kubeconfig", str(real_server.kubeconfig), "auth", "can-i", "*", "*", "--all-namespaces"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip() == "yes"
