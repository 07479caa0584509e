"""Mutants of the small operator in Go (bench/check/go-operator), each checked by the plain command as a child."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench._mutants import Result
from konverge.check.model import Alarm, Plan

FOLDER = Path(__file__).parent / "check" / "go-operator"
BUDGET, JOBS = "100s", "10"
"""What is under way when something is found has cost CPU in vain, and so has each worker's start: so there are few."""
MUTANTS = {
    "generation-first": "observedGeneration is saved before the work, and guards it",
    "error-swallowed": "a child that could not be written is never tried again",
    "ready-without-looking": "Ready is said as soon as everything is written",
    "cleanup-skipped": "the finalizer goes, and the record stays",
    "delete-not-idempotent": "a record that is gone already keeps the finalizer for ever",
    "flag-in-memory": "the Service is only made together with the StatefulSet",
    "taken-by-name": "an object of others with the right name is taken",
    "secret-again": "the password is generated again when the operator starts",
    "all-of-the-kind": "the deletion takes the ConfigMaps of all in the namespace",
    "waits-for-health": "no change is taken up while the pods are not ready",
    "whole-object": "what others wrote on a child goes with the next write",
    "scale-ignored": "pods are only added",
    "service-unwatched": "Services are not watched",
}
"""What the switches of main.go do."""
SANE = ""
"""No switch."""


def build(folder: Path) -> Path | None:
    """The program; None where Go or its modules are missing."""
    go = shutil.which("go")
    built = folder / "box-operator"
    if go is None or subprocess.run([go, "build", "-o", str(built), "."], cwd=FOLDER, capture_output=True).returncode:
        return None
    return built


def tried() -> Iterator[Result]:
    """The operator as it should be, and every mutant, one after the other; nothing where Go is missing."""
    _inherit_orphans()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if program is not None:
            for name, about in {SANE: "nothing is wrong with it", **MUTANTS}.items():
                yield attempt(program, name, about)


def attempt(program: Path, name: str, about: str) -> Result:
    """One mutant, by the command, until something above "low" is found."""
    began = _cpu()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "konverge.cli.main", "check", "--operator", str(FOLDER / "check.toml")]
        command += ["--budget", BUDGET, "--jobs", JOBS, "--fail-on", "medium", "--fail-fast"]
        subprocess.run(
            [*command, "--report", folder, "--json", str(out)],
            env={**os.environ, "BOX_OPERATOR": str(program), "MUTANT": name},
            capture_output=True,
            timeout=1800,
        )
        written = json.loads(out.read_text()) if out.exists() else {"findings": []}
    serious = [item for item in written["findings"] if item["severity"] != "low"]
    alarm = None
    if serious:
        first = serious[0]
        alarm = Alarm(oracle=first["oracle"], severity=first["severity"], object="", sentence=first["sentence"])
    plans = sum(written.get("tested", {}).values()) if isinstance(written.get("tested"), dict) else 0
    return Result(f"go: {name or 'sane'}", about, alarm, Plan("reference"), plans, _cpu() - began)


_PR_SET_CHILD_SUBREAPER = 36


def _inherit_orphans() -> None:
    """What outlives its parent becomes our child: the runs' CPU counts, although their workers are killed."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _cpu() -> float:
    """Of all children that have ended, with theirs."""
    with contextlib.suppress(ChildProcessError):  # there is none left
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
