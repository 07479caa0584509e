"""The corpus of exchanges recorded from a real kube-apiserver, replayed against `konverge apiserver` on a socket."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CORPUS = Path(__file__).parent.parent / "conformance"
# What has been reached; it only ever goes up. docs/conformance.md has the rest and its reasons.
LEAST_PERCENT = 99.0
LEAST_PERCENT_OF_AN_AREA = 95.0


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "konverge.cli.main", "apiserver", "--kubeconfig", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready https://")
        assert path.stat().st_mode & 0o777 == 0o600
        yield path
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@pytest.mark.limit(600)
@pytest.mark.spec("S-02", "S-03", "S-04", "S-05", "S-06", "S-07", "S-08", "S-09", "S-10", "S-11")
def test_the_recorded_corpus_is_answered_alike(kubeconfig: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(CORPUS / "replay.py"), "check", "--kubeconfig", str(kubeconfig), "-j", "16"]
    command += ["--limit", "60"]  # a busy machine is no difference
    folders = [str(CORPUS / "own"), str(CORPUS / "public/scenarios")]  # the long ones begin first
    done = subprocess.run([*command, "--json", str(report), *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    summary = json.loads(report.read_text())
    areas = {area: f"{count['passed']}/{count['total']}" for area, count in summary["areas"].items()}
    assert summary["percent"] >= LEAST_PERCENT, areas
    weak = {
        area
        for area, count in summary["areas"].items()
        if count["passed"] * 100 < count["total"] * LEAST_PERCENT_OF_AN_AREA
    }
    assert not weak, areas
