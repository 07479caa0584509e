"""kubectl's test/cmd: shell functions that check what kubectl prints and what the API server holds after each command.

They want what upstream starts for them: an API server that allows everything, with certain tokens and plugins, the
controllers, and no scheduler or kubelet. Upstream: hack/make-rules/test-cmd.sh, test/cmd/legacy-script.sh.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools import real_binaries
from tools.suites import modules, servers

ROOT = "kubernetes"
DRIVER = Path(__file__).with_suffix(".sh")
FOLDERS = (
    *("hack/lib", "hack/testdata", "test/cmd", "test/fixtures", "test/e2e/testing-manifests"),
    "third_party/forked/shell2junit",
)
NEEDED = ("bash", "curl", "diff", "jq", "openssl", "script", "tput")
ONLINE = "https://raw.githubusercontent.com/kubernetes/kubernetes/master/"
"""One function asks the internet for a file that is in the module as well."""
LIMIT = 300
"""Seconds for one function."""


NOT_RUN_UPSTREAM = ("run_kubectl_create_dry_run_tests", "run_kubeconfig_impersonate_tests")
"""Functions that upstream defines and does not run; the driver runs them at the end.

Not run_kubectl_response_compression_tests: it expects a namespace without kube-root-ca.crt, and so fails on the real
programs as well.
"""


@dataclass(frozen=True)
class Result:
    name: str
    passed: bool
    seconds: int
    log: Path

    def tail(self) -> str:
        """The last lines of the log, without the colours."""
        text = re.sub(r"\x1b(\[[0-9;]*m|\(B)", "", self.log.read_text(errors="replace"))
        return "\n".join(f"     {line}" for line in text.splitlines()[-25:])


def run(folder: Path, *, only: Collection[str] = (), real: Path | None = None, jobs: int = 1) -> list[Result]:
    """Run the functions on our server and controllers, or on the real programs in the folder `real`.

    With several jobs each has a server of its own and its share of the functions.
    """
    scripts = _source()
    known = functions(scripts)
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"test/cmd has no {', no '.join(unknown)}")
    names = [name for name in known if not only or name in only]
    jobs = min(jobs, len(names))  # a driver without names would run everything
    shares = [folder / str(number) for number in range(jobs)]
    for share in shares:
        prepare(scripts, share / ROOT, names)
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda number: _run_share(shares[number], names[number::jobs], real), range(jobs))
    return sorted((result for share in results for result in share), key=lambda result: result.name)


def _source() -> Path:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise modules.Unavailable(f"no {', no '.join(missing)} on the PATH: kubectl's test/cmd needs them")
    return modules.sources("k8s.io/kubernetes", real_binaries.KUBERNETES)


def functions(source: Path) -> list[str]:
    """Those that upstream runs, in its order, and those that it does not run."""
    text = (source / "test/cmd/legacy-script.sh").read_text()
    return [*re.findall(r"^ +record_command (run_\w+)$", text, flags=re.MULTILINE), *NOT_RUN_UPSTREAM]


def prepare(source: Path, root: Path, names: Collection[str]) -> None:
    """A copy of the scripts that the functions may write to, with kubectl where they look for it."""
    for name in FOLDERS:
        modules.copy(source / name, root / name)
    for script in (root / "test/cmd").iterdir():
        script.write_text(script.read_text().replace(ONLINE, ""))
    programs = root / "_output" / "bin"
    programs.mkdir(parents=True)
    (programs / "kubectl").symlink_to(_program("kubectl"))
    if "run_convert_tests" in names:  # nothing else needs it, and it has to be built
        (programs / "kubectl-convert").symlink_to(_program("kubectl-convert"))


def _program(name: str) -> Path:
    try:
        return real_binaries.program(name)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise modules.Unavailable(f"{name} cannot be had: {error}") from error


def _run_share(folder: Path, names: Sequence[str], real: Path | None) -> list[Result]:
    root, home = folder / ROOT, folder / "home"
    home.mkdir()
    authority, tokens = root / "hack/testdata/ca/ca.crt", root / "hack/testdata/auth-tokens.csv"
    programs = real or servers.drop_in(folder / "assets")
    manager = real / "kube-controller-manager" if real else None
    token = tokens.read_text().partition(",")[0]
    with (
        servers.server(programs, folder, authority=authority, tokens=tokens, certificates=home) as port,
        servers.controllers(manager, port, folder, authority=authority, token=token),
    ):
        return _drive(folder, port, names)


def _drive(folder: Path, port: int, names: Sequence[str]) -> list[Result]:
    home, logs, results = folder / "home", folder / "logs", folder / "results"
    logs.mkdir()
    results.touch()
    environment = {
        "PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C",
        "HOME": str(home), "TMPDIR": str(home), "KUBE_TEMP": str(home), "PORT": str(port),
        "FUNCTIONS": " ".join(names), "LIMIT": str(LIMIT), "LOGS": str(logs), "RESULTS": str(results),
    }  # fmt: skip
    with (folder / "driver.log").open("wb") as out:
        command = ["bash", str(DRIVER)]
        subprocess.run(command, cwd=folder / ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return read(results.read_text(), folder)


def read(results: str, folder: Path) -> list[Result]:
    """The lines of the driver. Without its last one, a check between the functions has ended the whole run."""
    lines = [line.split() for line in results.splitlines()]
    found = [
        Result(name, status == "0", int(seconds), folder / "logs" / f"{name}.log") for name, status, seconds in lines
    ]
    if not found or found[-1].name != "end":
        return [*found, Result("checks between the functions", False, 0, folder / "driver.log")]
    return found[:-1]
