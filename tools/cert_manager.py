"""cert-manager's controllers, webhook and CA injector, built from its Go module: `python -m tools.cert_manager`.

It needs Go and the module proxy, and takes five minutes on two free cores; what is built is kept in a folder outside
the repository, and an attempt that was broken off goes on where it was. No test builds it: they skip and name this
command.

The module has everything but the main packages, which are modules that are not published: those are ours
(`tests/real/programs/cert_manager`). Their module has a name as if it belonged to cert-manager, since Go lets nobody
else import what is internal to it. The chart that installs it all is kept beside the programs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path

from tools.kubevirt import Origin, cache, go, prepare

VERSION = "v1.21.2"
COMMAND = "python -m tools.cert_manager"
PROGRAMS = ("controller", "webhook", "cainjector")
_MODULE = "github.com/cert-manager/cert-manager"
_SOURCES = Path(__file__).resolve().parents[1] / "tests" / "real" / "programs" / "cert_manager"


def program(name: str) -> Path:
    return _folder() / f"cert-manager-{name}"


def chart() -> Path:
    return _folder() / "cert-manager.tgz"


def missing() -> str:
    """What to do about it; nothing when all is there."""
    there = chart().exists() and all(os.access(program(name), os.X_OK) for name in PROGRAMS)
    return "" if there else f"no cert-manager in {cache()}: install Go and run `{COMMAND}`"


def build() -> None:
    work = _folder() / "build"
    source = prepare(work, Origin(_MODULE, VERSION, _MODULE))
    go(work, "mod", "edit", "-module", f"{_MODULE}/cmd")
    shutil.copytree(_SOURCES, work, dirs_exist_ok=True)
    for name in PROGRAMS:
        go(work, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program(name)), f"./{name}")
    with tarfile.open(chart(), "w:gz") as packed:
        packed.add(source / "deploy" / "charts" / "cert-manager", "cert-manager")


def _folder() -> Path:
    return cache() / f"cert-manager-{VERSION}"


def main() -> int:
    if shutil.which("go") is None:
        print("there is no Go on the PATH", file=sys.stderr)
        return 1
    if missing():
        build()
    print(_folder())
    return 0


if __name__ == "__main__":
    sys.exit(main())
