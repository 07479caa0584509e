"""`kubectl explain` shows the docstrings of a class, on the embedded server and on the real one."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from konverge.objects import crd_dict
from konverge.operators.webapp.kind import WebApp

NAME = "webapps.apps.konverge.dev"


@pytest.mark.spec("O-66")
def test_the_docstrings_of_a_class_are_shown(kubectl: Path, either_kubeconfig: Path) -> None:
    def run(*arguments: str, stdin: str = "", may_fail: bool = False) -> str:
        command = [str(kubectl), "--kubeconfig", str(either_kubeconfig), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180)
        assert may_fail or done.returncode == 0, done.stderr
        return done.stdout

    run("apply", "-f", "-", stdin=json.dumps(crd_dict(WebApp)))
    try:
        run("wait", f"crd/{NAME}", "--for=condition=Established", "--timeout=90s")
        while not run("explain", "webapp", may_fail=True):  # the real server publishes what it serves a moment later
            time.sleep(0.5)
        assert "A web application: so many replicas of an image, reached at a port." in run("explain", "webapp")
        spec = run("explain", "webapp.spec")
        assert "What the user asks for." in spec
        assert "How many pods run." in spec
        assert "<no description>" not in spec
        assert "One word in CamelCase: why the status is so." in run("explain", "webapp.status.conditions.reason")
    finally:
        run("delete", "crd", NAME)
