"""Puts the executables of the drop-in into a folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

PROGRAMS = {"kube-apiserver": "kube_apiserver", "etcd": "etcd"}


def install(folder: Path, *, python: str = sys.executable) -> list[Path]:
    """Write the programs; those that were there before are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / name, module, python) for name, module in PROGRAMS.items()]


def _write(path: Path, module: str, python: str) -> Path:
    # A script and not a link: an interpreter's path may be longer than the first line of a script may be.
    command = f'exec {shlex.quote(python)} -m konverge.apiserver.envtest.{module} "$@"'
    partial = path.with_name(f".{path.name}.new")
    partial.write_text(
        f"#!/bin/sh\n# Made by `konverge envtest-assets`: runs Konverge in place of {path.name}.\n{command}\n"
    )
    partial.chmod(0o755)
    partial.replace(path)  # in one step: a suite may be starting it right now
    return path
