"""fabric8's client and the Java Operator SDK on the embedded server and on the real one; and with pods that run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.real.clients import programs
from tests.real.embedded import konverge_process
from tests.sim.processes.support import PYTHON

pytestmark = [pytest.mark.spec("S-60"), pytest.mark.limit(600)]  # the first downloads and builds, for minutes


@pytest.fixture(scope="module")
def program() -> list[str | Path]:
    return programs.java_program()


def test_an_operator_runs_and_is_used(program: list[str | Path], either_kubeconfig: Path) -> None:
    steps = programs.run(*program, "objects", kubeconfig=either_kubeconfig)
    expected = ["create", "list", "apply", "patch", "scale", "conflict", "watch", "informer", "operator", "election"]
    assert steps == [*expected, "delete"]


def test_pods_run_and_are_looked_into(program: list[str | Path], tmp_path: Path) -> None:
    pages, rules, kubeconfig = tmp_path / "pages", tmp_path / "rules.yaml", tmp_path / "kubeconfig"
    pages.mkdir()
    (pages / "index.html").write_text("a page")
    tmp_path.chmod(0o755)  # as root, processes are other users
    server = [sys.executable, "-u", "-m", "http.server", "{port:http}", "--bind", "{pod_ip}", "-d", str(pages)]
    rules.write_text(json.dumps([{"image": "web:*", "files": [*PYTHON, str(pages)], "command": server}]))
    up = ["up", "--processes", str(rules), "--operators", "none", "--nodes", "1", "--kubeconfig", str(kubeconfig)]
    with konverge_process(*up, "--output", "json") as line:
        assert line.startswith("{")
        steps = programs.run(*program, "pods", kubeconfig=kubeconfig)
    assert steps == ["run", "logs", "exec", "port-forward", "delete"]
