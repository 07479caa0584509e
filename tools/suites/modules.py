"""Published Go modules: where their files are, and programs built from them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path


class Unavailable(Exception):
    """A suite cannot run on this machine; the message says what is missing."""


def sources(module: str, version: str) -> Path:
    """The folder of a module in Go's module cache (read-only); downloaded if it is not there."""
    go = shutil.which("go")
    if go is None:
        raise Unavailable(f"no go on the PATH: the suite is in the Go module {module}")
    command = [go, "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(command, cwd="/", env={**os.environ, "GOFLAGS": "-mod=mod"}, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip()[-500:]
        raise Unavailable(f"the Go module {module}@{version} cannot be downloaded: {reason}")
    return Path(json.loads(done.stdout)["Dir"])


def copy(source: Path, target: Path) -> None:
    """Copy a folder of the module cache: writable, and scripts with their modes, which archives of Go do not keep."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or _is_script(path) else 0o644)


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
