"""controller-runtime's own suites that start envtest, on our drop-in or on the real programs."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.suites import modules

MODULE, VERSION = "sigs.k8s.io/controller-runtime", "v0.25.2"
PACKAGES = (
    *("builder", "cache", "client", "cluster", "controller", "controller/controllerutil", "envtest"),
    *("handler", "internal/controller", "internal/recorder", "manager", "manager/internal/integration"),
    *("metrics/filters", "reconcile", "source", "webhook"),
)
"""Not client/apiutil: it downloads the programs of an old Kubernetes."""
LIMIT = "15m"
_SUMMARY = re.compile(r"(\d+) Passed.*?\| .*?(\d+) Failed")
_FAILED = re.compile(r"^ *\[FAIL\] (.*)$", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Result:
    """One package. `failed` names what failed; a package that did not get to its end has failed as a whole."""

    package: str
    passed: int
    failed: tuple[str, ...]
    output: str


def prepare(cache: Path) -> Path:
    """A copy of the module that can be written to, kept between runs, with what its tests import."""
    source = modules.sources(MODULE, VERSION)
    folder = cache / f"controller-runtime-{VERSION}"
    ready = folder / ".ready"
    if not ready.exists():
        modules.copy(source, folder)
        done = _go(folder, "list", "-deps", "-test", *(f"./pkg/{name}" for name in PACKAGES))
        if done.returncode != 0:
            raise modules.Unavailable(f"what {MODULE} imports cannot be downloaded: {done.stderr.strip()[-500:]}")
        ready.touch()
    return folder


def run(folder: Path, assets: Path, package: str) -> Result:
    """Test one package with the etcd and the kube-apiserver in `assets`."""
    done = _go(folder, "test", "-v", "-count=1", "-timeout", LIMIT, f"./pkg/{package}", KUBEBUILDER_ASSETS=str(assets))
    return read(package, done.returncode, done.stdout + done.stderr)


def read(package: str, status: int, output: str) -> Result:
    """What the output of `go test` says. Ginkgo prints one summary for a suite; a package may have several."""
    text = _COLOURS.sub("", output)
    passed = sum(int(count) for count, _ in _SUMMARY.findall(text))
    failed = tuple(dict.fromkeys(name.strip() for name in _FAILED.findall(text)))
    if status != 0 and not failed:
        failed = ("the package as a whole",)
    return Result(package, passed, failed, text)


def _go(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "GOFLAGS": os.environ.get("GOFLAGS", "") + " -mod=mod", **environment}
    return subprocess.run(["go", *arguments], cwd=folder, env=known, capture_output=True, text=True)
