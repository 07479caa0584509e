"""KubeVirt's and CDI's own controllers, built from their Go modules: `python -m tools.kubevirt`.

It needs Go and the module proxy, and takes ten minutes on two free cores; what is built is kept in a folder outside the
repository, and an attempt that was broken off goes on where it was. Nothing is built by the tests: they skip and name
this command.

The modules that KubeVirt replaces by folders of its repository are published under the same version as itself; that
is what takes their place, since a module does not contain the folders.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

VERSION = "v1.8.4"
CDI_VERSION = "v1.65.0"
COMMAND = "python -m tools.kubevirt"
_SOURCES = Path(__file__).resolve().parents[1] / "tests" / "real" / "programs" / "kubevirt"


class Origin(NamedTuple):
    module: str
    version: str
    package: str


_KUBEVIRT, _CDI = "kubevirt.io/kubevirt", "kubevirt.io/containerized-data-importer"
PROGRAMS = {
    "kubevirt-definitions": Origin(_KUBEVIRT, VERSION, "./definitions"),
    "virt-controller": Origin(_KUBEVIRT, VERSION, f"{_KUBEVIRT}/cmd/virt-controller"),
    "virt-api": Origin(_KUBEVIRT, VERSION, f"{_KUBEVIRT}/cmd/virt-api"),
    "cdi-definitions": Origin(_CDI, CDI_VERSION, "./definitions"),
    "cdi-controller": Origin(_CDI, CDI_VERSION, f"{_CDI}/cmd/cdi-controller"),
    "cdi-apiserver": Origin(_CDI, CDI_VERSION, f"{_CDI}/cmd/cdi-apiserver"),
}


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "konverge" / f"kubevirt-{VERSION}"


def missing(*names: str) -> str:
    """Which of these programs are not built, and what to do about it; nothing when all are there."""
    absent = [name for name in names if not os.access(cache() / name, os.X_OK)]
    return f"no {', '.join(absent)} in {cache()}: install Go and run `{COMMAND}`" if absent else ""


def build(name: str) -> None:
    origin = PROGRAMS[name]
    work = cache() / "build" / origin.module.rpartition("/")[2]
    if not (work / "go.mod").exists():
        _prepare(work, origin)
    if origin.package.startswith("./"):
        shutil.copytree(_SOURCES / work.name, work / "definitions", dirs_exist_ok=True)
    target = cache() / name
    _go(work, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), origin.package)


def _prepare(work: Path, origin: Origin) -> None:
    """A module that has the requirements and the replacements of the other one as its own: only those count."""
    work.mkdir(parents=True, exist_ok=True)
    named = f"{origin.module}@{origin.version}"
    folder = Path(_go(cache(), "mod", "download", "-json", named).split('"Dir": "')[1].split('"')[0])
    (work / "go.sum").write_text((folder / "go.sum").read_text())
    (work / "go.mod").write_text(own_requirements((folder / "go.mod").read_text(), origin))


def own_requirements(text: str, origin: Origin) -> str:
    """The go.mod of a module that builds programs of another one, from the go.mod of that."""
    text = re.sub(r"^module .*$", "module konverge.invalid/build", text, flags=re.MULTILINE)
    text = re.sub(r"(\S+) => \./staging/\S+", rf"\1 => \1 {origin.version}", text)
    text = re.sub(r"^tool (\(.*?^\)|\S+)$", "", text, flags=re.MULTILINE | re.DOTALL)
    return f"{text.rstrip()}\n\nrequire {origin.module} {origin.version}\n"


def _go(folder: Path, *arguments: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(["go", *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def main() -> int:
    if shutil.which("go") is None:
        print("there is no Go on the PATH", file=sys.stderr)
        return 1
    for name in sys.argv[1:] or PROGRAMS:
        if missing(name):
            begun = time.monotonic()
            build(name)
            print(f"{name}: built in {time.monotonic() - begun:.0f} s", flush=True)
    print(cache())
    return 0


if __name__ == "__main__":
    sys.exit(main())
