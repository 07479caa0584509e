"""A thousand tests with a cluster each: the time of pytest, against ten starts of a cluster by kind.

Each test has the `cluster` fixture to itself: it creates a Deployment, waits until its pods are ready, and looks. All
of them run in one process of pytest. kind is not run here, since it needs Docker: of a test with kind only the start of
its cluster counts, the image of the node being there already; its tests themselves cost nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._progress import say
from bench._report import OURS, Bar, Figure, Report

KIND = "kind (starts of clusters only)"
START_OF_KIND = 30.0
"""Seconds of one `kind create cluster`: an assumption; users report tens of seconds."""
TESTS = 1000
OF_KIND = 10
STARTS = 100
"""Tests that do nothing with their cluster; `bench cluster` has a bar for the start alone."""
TIME, CPU, EACH = "tests with a cluster each, time", "tests with a cluster each, CPU", "one test with a cluster, CPU"
START = "start and end of a test's cluster, CPU"

SUITE = """
import pytest

from konverge.objects import from_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.testing import settled

CONTAINER = {"name": "web", "image": "web:1"}
POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": POD}


@pytest.mark.parametrize("number", range(%d))
async def test_a_deployment_comes_up(number, cluster, client):
    meta = {"name": f"web-{number}", "namespace": "default"}
    await client.create(from_dict(Deployment, {"metadata": meta, "spec": SPEC}))
    await settled(cluster)
    (deployment,) = await client.list(Deployment, "default")
    assert (deployment.metadata.name, deployment.status.ready_replicas) == (f"web-{number}", 2)
"""


IDLE = """
import pytest

@pytest.mark.parametrize("number", range(%d))
async def test_nothing_is_done(number, cluster): ...
"""


def run(quick: bool) -> Report:
    tests = TESTS // 10 if quick else TESTS
    say(f"testing: {STARTS} starts of a cluster")
    start = (_pytest(IDLE, 1 + STARTS)[0] - _pytest(IDLE, 1)[0]) / STARTS
    say(f"testing: {tests} tests")
    cpu, elapsed = _pytest(SUITE, tests)
    of_kind = OF_KIND * START_OF_KIND * tests / TESTS
    report = Report("testing", f"testing: {tests} tests with the cluster fixture, one process of pytest")
    report.figures = [
        Figure(TIME, OURS, elapsed, "s"),
        Figure(TIME, KIND, of_kind, "s"),
        Figure(CPU, OURS, cpu, "s"),
        Figure(CPU, KIND, of_kind, "s"),
        Figure(EACH, OURS, cpu / tests * 1e3, "ms"),
        Figure(START, OURS, start * 1e3, "ms"),
    ]
    report.bars = [Bar(CPU, 1.0, text=f"{TESTS} tests here, {OF_KIND} there")]
    report.notes = [
        "the bar is on CPU time, which depends less on what else runs here; of kind both are the time of its starts",
        f"kind: {OF_KIND * tests / TESTS:g} starts of {START_OF_KIND:g} s, as assumed above; not measured here",
    ]
    return report


def _pytest(suite: str, tests: int) -> tuple[float, float]:
    """Seconds of CPU time, user and system, and of the clock of a run in which all tests pass."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_many.py").write_text(suite % tests)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-W",
            "ignore",
            folder,
        ]
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or f"{tests} passed" not in output:
        raise RuntimeError(f"the tests failed:\n{output[-2000:]}")
    return used.ru_utime + used.ru_stime, elapsed
