"""Test suites of other people's clients, from their source distributions, run against a cluster.

The sources come from the configured package index when they are first needed and are kept outside of the repository.
Versions are pinned: what a suite shows is known for one version alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real.clients import programs

STAND_INS = programs.SOURCES / "python" / "kind"
"""Modules that suites import and that are not for the embedded cluster."""


@dataclass(frozen=True)
class Suite:
    package: str
    version: str
    needs: tuple[str, ...]
    """What its tests import besides the package itself."""

    @property
    def folder(self) -> Path:
        return programs.cache() / "suites" / f"{self.package}-{self.version}"

    @property
    def sources(self) -> Path:
        return self.folder / f"{self.package}-{self.version}"

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def prepare(self) -> None:
        """Get the sources and an environment for them; skips where they cannot be had."""
        ready, wanted = self.folder / "ready", " ".join(self.needs)
        if ready.exists() and ready.read_text() == wanted:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        pinned, pip = f"{self.package}=={self.version}", ("-m", "pip")
        self._step("making an environment", sys.executable, "-m", "venv", "venv", may_skip=False)
        download = ("download", "--quiet", "--no-deps", "--no-binary", self.package, "--dest", ".", pinned)
        self._step(f"downloading the sources of {pinned}", str(self.python), *pip, *download, may_skip=True)
        with tarfile.open(self.folder / f"{self.package}-{self.version}.tar.gz") as archive:
            archive.extractall(self.folder, filter="data")
        install = ("install", "--quiet", pinned, *self.needs)
        self._step(f"installing {pinned} and what its tests need", str(self.python), *pip, *install, may_skip=True)
        ready.write_text(wanted)

    def _step(self, what: str, *command: str, may_skip: bool) -> None:
        programs.step(what, *command, cwd=self.folder, may_skip=may_skip)

    def run(self, *arguments: str, results: Path, limit: float, **environment: str) -> Results:
        """Run tests of the suite to their end, within `limit` seconds."""
        command = [str(self.python), "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "-q"]
        done = subprocess.run(
            [*command, f"--junitxml={results}", *arguments],
            cwd=self.sources,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=limit,
        )
        assert results.exists(), f"the suite of {self.package} did not run:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return Results.of(results)


@dataclass(frozen=True)
class Results:
    passed: frozenset[str]
    skipped: Mapping[str, str]
    """Why, by test."""
    failed: Mapping[str, str]

    @classmethod
    def of(cls, report: Path) -> Results:
        """What a JUnit report says; tests are named as `file::test`."""
        passed: set[str] = set()
        skipped: dict[str, str] = {}
        failed: dict[str, str] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
            problem = next((part for part in case if part.tag in ("failure", "error")), None)
            skip = case.find("skipped")
            if problem is not None:
                failed[name] = f"{problem.get('message')}\n{problem.text}"
            elif skip is not None:
                skipped[name] = skip.get("message") or ""
            else:
                passed.add(name)
        return cls(frozenset(passed - failed.keys()), skipped, failed)

    def surprises(self, known: Mapping[str, str]) -> str:
        """The failures that are not known ones, in full, for the report of a test; empty if there are none."""
        return "\n\n".join(f"{name}: {text[-3000:]}" for name, text in self.failed.items() if name not in known)
