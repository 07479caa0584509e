"""Kubernetes' own conformance specs (test/e2e), on `konverge up` with two simulated nodes.

Containers of busybox, and of agnhost in certain areas, are processes, each with its image as `/` and in some areas in a
network of pods; all others are simulated.
`conformance_passing.txt` lists the specs that pass; the others need what is not there (docs/conformance.md has the
reasons). A spec that is listed and fails fails the suite.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import real_binaries, real_packages
from tools.suites import images, modules

LIST = "test/conformance/testdata/conformance.yaml"
PASSING = Path(__file__).with_name("conformance_passing.txt")
BATCH = 10
"""Specs for one process: what it has found is on disk when it ends."""
LIMIT = "45m"
"""For one process."""

AREAS = (
    *("configmap", "container", "containers", "crd", "downward-api", "e2e-kubelet-etc-hosts", "emptydir"),
    *("init-container", "kubectl-logs", "kubelet-test", "pods", "prestop", "projected", "secrets"),
    *("security-context", "subpath", "var-expansion", "webhook"),
)
"""Namespaces, without their numbers, where agnhost is a process: its specs ask it for something. Elsewhere it stands
for any server."""
NETWORKED = (
    *("container-lifecycle-hook", "container-probe", "dns", "emptydir-wrapper", "endpointslice", "hostport", "kubectl"),
    *("pod-network-test", "projected-podcertificate", "proxy", "replicaset", "replication-controller", "services"),
    *("statefulset", "svcaccounts"),
)
"""Where it is one in a network of pods: several listen on one port, and are reached by others."""
_AGNHOST = """
- image: "*/e2e-test-images/{image}:*"
  namespace: "{area}-*"
  root: {root}
  network: {network}
  host_paths: [/etc/hosts]
  command: [/bin/sh, -c, 'if [ $# = 0 ]; then set -- {default}; fi; exec /agnhost "$@"', agnhost, "{{args}}"]
"""
"""With what the image does without arguments. One spec mounts the hosts file of its node."""
_PAUSE = """
- image: "*/pause:*"
  namespace: "container-lifecycle-hook-*"
  root: {agnhost}
  network: pod
  command: [/agnhost, pause]
"""
"""Hooks are those of a container that is a process."""
PAGES = ("kitten", "nautilus")
"""Images of agnhost with a page of their own."""
_BUSYBOX = """
- image: "*/e2e-test-images/busybox:*"
  namespace: "{area}"
  root: {root}
  host_paths: [/tmp/job-e2e]
  command: [/bin/sh, "{{args}}"]
"""
"""Jobs whose pods fail once remember it in that folder of their node."""
WITH_BASH = ("configmap-*", "secrets-*")
"""Where its shell is bash: Debian's busybox drops variables such as `data-1`."""
SIMULATED = """
- {image: "*/pause:*", behave: runs}
- {image: "*/e2e-test-images/nginx:*", behave: runs}
- {image: "foo:non-existent", behave: image-pull-error}
- {image: "webserver:404", behave: image-pull-error}
"""
"""What is known of other images: servers never end by themselves, whatever their pod's restart policy is, and two names
stand for images that no registry has."""


@dataclass(frozen=True)
class Result:
    name: str
    passed: bool
    reason: str = ""


def run(folder: Path, *, only: Collection[str] = (), all_specs: bool = False) -> list[Result]:
    """The listed specs, or all of them; with `only`, those whose name holds one of these texts.

    One after the other: pods share this machine's ports.
    """
    names = specs(modules.sources("k8s.io/kubernetes", real_binaries.KUBERNETES)) if all_specs else passing()
    names = [name for name in names if not only or any(text in name for text in only)]
    if not names:
        raise ValueError(f"no spec has {' or '.join(only)} in its name")
    programs = Programs.find()
    results: list[Result] = []
    with _cluster(folder, programs) as kubeconfig:
        for first in range(0, len(names), BATCH):
            batch = names[first : first + BATCH]
            report = folder / f"{first}.json"
            _run_batch(report, kubeconfig, programs, batch)
            results += read(report, batch)
    return results


def specs(source: Path) -> list[str]:
    """The names of all conformance specs, as upstream lists them."""
    import yaml

    return [entry["codename"] for entry in yaml.safe_load((source / LIST).read_text(encoding="utf-8"))]


def passing() -> list[str]:
    return [line for line in PASSING.read_text(encoding="utf-8").splitlines() if line]


@dataclass(frozen=True)
class Programs:
    suite: Path
    agnhost: Path
    kubectl: Path
    busybox: Path
    tools: tuple[Path, ...]
    """Of agnhost's image."""
    files: Path
    """Where the module has the other files of the images."""

    @classmethod
    def find(cls) -> Programs:
        """Built from Go modules where they are missing: half an hour for the suite."""
        busybox = shutil.which("busybox")
        if busybox is None:
            raise modules.Unavailable("no busybox on the PATH: its containers have a static one (busybox-static)")
        tools = {name: shutil.which(name) for name in images.TOOLS}
        missing = sorted({images.TOOLS[name] for name, path in tools.items() if path is None})
        if missing:
            raise modules.Unavailable(f"the image of agnhost is not complete: {real_packages.advice(missing)}")
        try:
            suite, agnhost, kubectl = map(real_binaries.program, ("e2e.test", "agnhost", "kubectl"))
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise modules.Unavailable(f"e2e.test, agnhost or kubectl cannot be had: {error}") from error
        files = modules.sources("k8s.io/kubernetes", real_binaries.KUBERNETES) / "test/images"
        return cls(suite, agnhost, kubectl, Path(busybox), tuple(Path(path) for path in tools.values() if path), files)


@contextmanager
def _cluster(folder: Path, programs: Programs) -> Iterator[Path]:
    kubeconfig, processes, simulated = folder / "kubeconfig", folder / "processes.yaml", folder / "simulated.yaml"
    processes.write_text("".join(_rules(_make_images(folder / "images", programs))))
    simulated.write_text(SIMULATED)
    up = (
        *(sys.executable, "-m", "konverge.cli.main", "up", "--name", "conformance", "--nodes", "2"),
        *("--operators", "none", "--no-console", "--processes", processes, "--rules", simulated),
        *("--kubeconfig", kubeconfig, "--output", "json"),
    )
    with (folder / "up.log").open("wb") as log, subprocess.Popen(up, stdout=subprocess.PIPE, stderr=log) as process:
        assert process.stdout is not None
        try:
            if not process.stdout.readline():
                raise RuntimeError(f"konverge up did not start: {(folder / 'up.log').read_text()[-2000:]}")
            yield kubeconfig
        finally:
            process.terminate()


def _make_images(folder: Path, programs: Programs) -> dict[str, Path]:
    roots = {name: folder / name for name in ("agnhost", "busybox", "busybox-bash", *PAGES)}
    images.make_busybox(roots["busybox"], programs.busybox)
    shell = (tool for tool in programs.tools if tool.name == "bash")
    images.make_busybox(roots["busybox-bash"], programs.busybox, tools=shell)
    common = (programs.busybox, programs.agnhost)
    images.make_agnhost(roots["agnhost"], *common, tools=programs.tools, files=programs.files)
    for name in PAGES:
        images.make_page(roots[name], *common, files=programs.files)
    return roots


def _rules(roots: Mapping[str, Path]) -> Iterator[str]:
    for area in sorted((*AREAS, *NETWORKED), key=len, reverse=True):  # `container-*` is also what `container-probe` is
        network = "pod" if area in NETWORKED else "host"
        for image in ("agnhost", "glibc-dns-testing"):
            yield _AGNHOST.format(image=image, area=area, root=roots["agnhost"], network=network, default="pause")
        for image in PAGES:
            yield _AGNHOST.format(image=image, area=area, root=roots[image], network=network, default="test-webserver")
    yield _PAUSE.format(**roots)
    for area in WITH_BASH:
        yield _BUSYBOX.format(area=area, root=roots["busybox-bash"])
    yield _BUSYBOX.format(area="*", root=roots["busybox"])


def _run_batch(report: Path, kubeconfig: Path, programs: Programs, names: Sequence[str]) -> None:
    options = (
        *(f"--kubeconfig={kubeconfig}", "--provider=skeleton", f"--kubectl-path={programs.kubectl}"),
        *("--dump-logs-on-failure=false", "--ginkgo.no-color", "--ginkgo.v", f"--ginkgo.timeout={LIMIT}"),
        *(f"--ginkgo.json-report={report}", *(f"--ginkgo.focus={re.escape(name)}" for name in names)),
    )
    path = os.pathsep.join((str(programs.kubectl.parent), os.environ["PATH"]))
    with report.with_suffix(".log").open("wb") as out:
        subprocess.run(
            [programs.suite, *options], cwd=report.parent, env={**os.environ, "PATH": path}, stdout=out, stderr=out
        )


def read(report: Path, names: Sequence[str]) -> list[Result]:
    """What Ginkgo's report says of these specs. One that it does not name has not been run, and so has failed."""
    found = {name: Result(name, False, f"was not run: see {report.with_suffix('.log')}") for name in names}
    if report.exists():
        for suite in json.loads(report.read_text(encoding="utf-8")):
            for spec in suite["SpecReports"] or ():
                name = " ".join((*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]))
                if name in found and (spec["State"] != "skipped" or _reason(spec)):
                    found[name] = Result(name, spec["State"] == "passed", _reason(spec))
    return list(found.values())


def _reason(spec: dict[str, Any]) -> str:
    return str((spec.get("Failure") or {}).get("Message", ""))
