"""KubeVirt's and CDI's own controllers, built from their Go modules: `python -m tools.kubevirt`.

It needs Go and the module proxy, and takes ten minutes on two free cores; what is built is kept in a folder outside the
repository, and an attempt that was broken off goes on where it was. Nothing is built by the tests: they skip and name
this command.

The modules that KubeVirt replaces by folders of its repository are published under the same version as itself; that
is what takes their place, since a module does not contain the folders.

CDI's programs have ports and files in their code that belong to a pod. Those of a test are not alone on a machine, so
the main packages are copied, and take from the environment what is in `_MOVED`; everything else is as published.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

VERSION = "v1.8.4"
CDI_VERSION = "v1.65.0"
COMMAND = "python -m tools.kubevirt"
_SOURCES = Path(__file__).resolve().parents[1] / "tests" / "real" / "programs" / "kubevirt"
_PORT = 'func() (port uint) { fmt.Sscan(os.Getenv("KONVERGE_PORT"), &port); return }()'
_MOVED = {
    "cdi-controller": (
        ('":8443"', 'os.Getenv("KONVERGE_LISTEN")'),
        ('const (\n\treadyFile = "/tmp/ready"\n)', 'var readyFile = os.Getenv("KONVERGE_READY_FILE")'),
        ("controller.TokenPublicKeyPath", 'os.Getenv("KONVERGE_PUBLIC_KEY")'),
        ("controller.TokenPrivateKeyPath", 'os.Getenv("KONVERGE_PRIVATE_KEY")'),
    ),
    "cdi-apiserver": (('"0.0.0.0"', '"127.0.0.1"'), ("\t\tdefaultPort,\n", f"\t\t{_PORT},\n")),
}
"""What is written in the main package of a program, and what takes its place."""


class Origin(NamedTuple):
    module: str
    version: str
    package: str

    @property
    def name(self) -> str:
        return self.module.rpartition("/")[2]


_KUBEVIRT, _CDI = "kubevirt.io/kubevirt", "kubevirt.io/containerized-data-importer"
PROGRAMS = {
    "kubevirt-definitions": Origin(_KUBEVIRT, VERSION, "./definitions"),
    "virt-controller": Origin(_KUBEVIRT, VERSION, f"{_KUBEVIRT}/cmd/virt-controller"),
    "virt-api": Origin(_KUBEVIRT, VERSION, f"{_KUBEVIRT}/cmd/virt-api"),
    "cdi-definitions": Origin(_CDI, CDI_VERSION, "./definitions"),
    "cdi-controller": Origin(_CDI, CDI_VERSION, "./cdi-controller"),
    "cdi-apiserver": Origin(_CDI, CDI_VERSION, "./cdi-apiserver"),
}


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "konverge"


def program(name: str) -> Path:
    """Where a program is, or will be; another version is another file."""
    origin = PROGRAMS[name]
    return cache() / f"{origin.name}-{origin.version}" / name


def missing(*names: str) -> str:
    """Which of these programs are not built, and what to do about it; nothing when all are there."""
    absent = [name for name in names if not os.access(program(name), os.X_OK)]
    return f"no {', '.join(absent)} in {cache()}: install Go and run `{COMMAND}`" if absent else ""


def build(name: str) -> None:
    origin, target = PROGRAMS[name], program(name)
    work = target.parent / "build"
    source = prepare(work, origin)
    if name in _MOVED:
        _move(source / "cmd" / name, work / name, _MOVED[name])
    elif origin.package.startswith("./"):
        shutil.copytree(_SOURCES / origin.name, work / "definitions", dirs_exist_ok=True)
    go(work, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), origin.package)


def prepare(work: Path, origin: Origin) -> Path:
    """A folder in which programs of a module can be built; the one that the module has been downloaded to."""
    done = go(work, "mod", "download", "-json", f"{origin.module}@{origin.version}")
    source = Path(str(json.loads(done)["Dir"]))
    if not (work / "go.mod").exists():
        shutil.copyfile(source / "go.sum", work / "go.sum")
        (work / "go.mod").write_text(own_requirements((source / "go.mod").read_text(), origin))
    return source


def _move(source: Path, target: Path, changes: Iterable[tuple[str, str]]) -> None:
    """A main package of another module as one of ours, with these changes."""
    target.mkdir(exist_ok=True)
    (main,) = (path for path in source.glob("*.go") if not path.name.endswith("_test.go"))
    (target / "main.go").write_text(changed(main.read_text(), changes))


def changed(text: str, changes: Iterable[tuple[str, str]]) -> str:
    """Each of them once: a version whose code is another one must not be built as if nothing were to change."""
    for before, after in changes:
        if text.count(before) != 1:
            raise ValueError(f"{before!r} is there {text.count(before)} times")
        text = text.replace(before, after)
    return text


def own_requirements(text: str, origin: Origin) -> str:
    """The go.mod of a module that builds programs of another one, from the go.mod of that: it has the requirements and
    the replacements as its own, for only those count."""
    text = re.sub(r"^module .*$", "module konverge.invalid/build", text, flags=re.MULTILINE)
    text = re.sub(r"(\S+) => \./staging/\S+", rf"\1 => \1 {origin.version}", text)
    text = re.sub(r"^tool (\(.*?^\)|\S+)$", "", text, flags=re.MULTILINE | re.DOTALL)
    return f"{text.rstrip()}\n\nrequire {origin.module} {origin.version}\n"


def go(folder: Path, *arguments: str) -> str:
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
