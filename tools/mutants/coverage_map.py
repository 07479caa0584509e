"""Which tests enter which functions: recorded once, and again only for the test files that change.

The map is used to choose tests, nothing else, so it may be a little old: it names functions and not lines. Where the
source of a function has changed since (or the function is new), the tests of its whole file are taken.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

FAST = "not real and not long"


@dataclass
class Recorded:
    seconds: float
    passed: bool
    functions: list[str]


@dataclass
class CoverageMap:
    tests: dict[str, Recorded] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """The digest of each test file when it was recorded last, and of each source file when the first one was."""

    @classmethod
    def load(cls, path: Path) -> CoverageMap:
        if not path.is_file():
            return cls()
        data = json.loads(path.read_text(encoding="utf-8"))
        names = data["functions"]
        tests = {
            name: Recorded(seconds, passed, [names[number] for number in numbers])
            for name, (seconds, passed, numbers) in data["tests"].items()
        }
        return cls(tests, data["files"])

    def save(self, path: Path) -> None:
        names = sorted({name for test in self.tests.values() for name in test.functions})
        numbers = {name: number for number, name in enumerate(names)}
        tests = {
            name: (round(test.seconds, 4), test.passed, [numbers[function] for function in test.functions])
            for name, test in sorted(self.tests.items())
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"functions": names, "tests": tests, "files": self.files}
        path.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")

    def by_function(self) -> dict[str, list[str]]:
        entering: dict[str, list[str]] = defaultdict(list)
        for name, test in self.tests.items():
            if test.passed:
                for function in test.functions:
                    entering[function].append(name)
        return entering

    def forget(self, file: str) -> None:
        self.tests = {name: test for name, test in self.tests.items() if name.partition("::")[0] != file}
        self.files.pop(file, None)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


class Recording:
    """Brings a map up to date by running the tests that it does not know."""

    def __init__(self, root: Path, source: str, jobs: int, build: Path) -> None:
        self._root = root
        self._source = source
        self._jobs = jobs
        self._build = build

    def update(self, known: CoverageMap, folders: list[str]) -> None:
        """Records the test files below `folders` that are new or have changed, folder by folder."""
        present = {str(path.relative_to(self._root)) for path in sorted((self._root / "tests").rglob("test_*.py"))}
        for file in [file for file in known.files if file.startswith("tests/") and file not in present]:
            known.forget(file)
        wanted = sorted(file for file in present if any(_below(file, folder) for folder in folders))
        stale = [file for file in wanted if known.files.get(file) != digest(self._root / file)]
        for folder, files in groupby(stale, key=lambda file: file.split("/")[1]):
            chosen = list(files)
            print(f"recording which functions {len(chosen)} test files of {folder} enter …", flush=True)
            self._record(known, chosen)
            known.save(self._build / "map.json")

    def _record(self, known: CoverageMap, files: list[str]) -> None:
        parts = self._build / "parts"
        shutil.rmtree(parts, ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-q", "-m", FAST, "-p", "tools.mutants.recorder"]
        command += ["--record-functions", str(parts), "--record-source", self._source]
        if self._jobs > 1 and len(files) > 1:
            command += ["-n", str(self._jobs), "--dist", "worksteal"]
        done = subprocess.run([*command, *files], cwd=self._root, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 5):  # all passed, some failed, no tests
            raise SystemExit(f"the tests cannot be run:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        for file in files:
            known.forget(file)
            known.files[file] = digest(self._root / file)
        for part in sorted(parts.glob("*.json")):
            for name, test in json.loads(part.read_text(encoding="utf-8")).items():
                known.tests[name] = Recorded(**test)
        failed = [name for name, test in known.tests.items() if not test.passed and name.partition("::")[0] in files]
        for name in failed:
            print(f"  left out, because it fails or is skipped without any mutant: {name}")
        for path in sorted((self._root / self._source).rglob("*.py")):
            known.files.setdefault(str(path.relative_to(self._root)), digest(path))


def _below(file: str, folder: str) -> bool:
    return file == folder or file.startswith(folder.rstrip("/") + "/")
