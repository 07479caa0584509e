"""Suites of other projects that start envtest, on our drop-in or on the real programs.

A suite is data (`envtest_suites.py`). Its module is copied into a cache that is kept between runs, and the tests of a
package are built there once.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools import real_binaries
from tools.suites import modules

BUILD_LIMIT = 1800.0
"""Seconds to download and build the tests of one package; what is done by then is kept."""
RUN_LIMIT = 1800.0
"""Seconds for the tests of one package. They end themselves then, and say where they are."""
_GRACE = 30.0
"""Seconds for saying so."""
PATIENCE = {f"KUBEBUILDER_CONTROLPLANE_{what}_TIMEOUT": "120s" for what in ("START", "STOP")}
"""envtest gives the programs twenty seconds, which are short on a busy machine."""
WHOLE = "the package as a whole"
_SUMMARY = re.compile(r"(\d+) Passed.*?\| .*?(\d+) Failed")
_FAILED = re.compile(r"^ *\[(?:FAIL|TIMEDOUT|INTERRUPTED|ABORTED|PANICKED!?)\] (.*)$", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Suite:
    name: str
    module: str
    version: str
    packages: tuple[str, ...]
    """Folders of the module whose tests start envtest."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Texts in the names of specs that may fail, each with the reason."""
    ports: tuple[int, ...] = ()
    """What its tests listen on, wherever they run."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """A copy of the module that can be written to, outside of the repository."""
        return real_binaries.cache().parent / "programs" / "suites" / f"{self.name}-{self.version}"

    def program(self, package: str) -> Path:
        """The tests of a package, once they are built."""
        return self.folder.parent / "built" / f"{self.folder.name}-{package.replace('/', '-')}"

    def reason(self, spec: str) -> str | None:
        """Why this spec may fail; None if it must not."""
        return next((reason for text, reason in self.known.items() if text in spec), None)


@dataclass(frozen=True)
class Result:
    """One package. A package that did not get to its end has failed as a whole."""

    package: str
    passed: int
    failed: tuple[str, ...]
    output: str
    known: tuple[str, ...] = ()
    """What failed and may."""

    def tail(self) -> str:
        """The end of the output, where Ginkgo sums up."""
        return "\n".join(self.output.splitlines()[-60:])


def build(suite: Suite, package: str, *, limit: float = BUILD_LIMIT) -> Path:
    """The program with the tests of a package. Raises `Unavailable` where its parts or the time for it are missing."""
    program = suite.program(package)
    if program.exists():
        return program
    ready = suite.folder / ".ready"
    if not ready.exists():
        modules.copy(modules.sources(suite.module, suite.version), suite.folder)
        ready.touch()
    _go(suite, "list", "-deps", "-test", f"./{package}", limit=limit, failure="what it imports cannot be downloaded")
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_name(f".{program.name}.{os.getpid()}")
    options = ("-c", "-vet=off", "-o", str(partial), f"./{package}")
    _go(suite, "test", *options, limit=limit, failure=f"{package} cannot be built")
    partial.rename(program)  # in one step: another run may be building it too
    return program


def _go(suite: Suite, *arguments: str, limit: float, failure: str) -> None:
    known = {**os.environ, "GOFLAGS": os.environ.get("GOFLAGS", "") + " -mod=mod"}
    try:
        done = subprocess.run(
            ["go", *arguments], cwd=suite.folder, env=known, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        late = (
            f"building the tests of {suite.module} took longer than {limit:.0f} s; what is done is kept: run it again"
        )
        raise modules.Unavailable(late) from None
    if done.returncode != 0:
        raise modules.Unavailable(f"{suite.module}: {failure}: {done.stderr.strip()[-500:]}")


def run(
    suite: Suite, package: str, assets: Path, scratch: Path, *, options: Sequence[str] = (), limit: float = RUN_LIMIT
) -> Result:
    """Test one package with the etcd and the kube-apiserver in `assets`; its output is kept in `scratch`."""
    program = build(suite, package)
    taken = [str(port) for port in suite.ports if _is_taken(port)]
    if taken:
        raise modules.Unavailable(f"the tests of {suite.name} listen on port {', '.join(taken)}, which is taken")
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    log = scratch / f"{program.name}.log"
    status = _run_alone(
        [str(program), f"-test.timeout={limit:.0f}s", *options],
        cwd=suite.folder / package,
        environment={**PATIENCE, **suite.environment, "KUBEBUILDER_ASSETS": str(assets), "TMPDIR": str(temporary)},
        log=log,
        limit=limit + _GRACE,
    )
    return read(suite, package, status, log.read_text(encoding="utf-8", errors="replace"))


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Go does it: who has just ended is no obstacle
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _run_alone(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path, limit: float) -> int:
    """The status of a program. What it leaves running ends with it: not every suite stops its servers.

    envtest gives each server a process group of its own; the session is what they have in common. The program is only
    waited for when its session is over, so that the session's number stands for nothing else.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    ended = os.pidfd_open(process.pid)
    try:
        select.select([ended], [], [], limit)
    finally:
        os.close(ended)
        _end_session(process.pid)
        process.wait()
    return process.returncode


def _end_session(session: int) -> None:
    """Kill what is in a session, and return when it has ended: the next suite may need the same port."""
    while members := _living(session):
        for member in members:
            with contextlib.suppress(ProcessLookupError):  # ended, and waited for, since
                signal.pidfd_send_signal(member, signal.SIGKILL)
        for member in members:
            _has_ended(member, None)
            os.close(member)


def _living(session: int) -> list[int]:
    """Descriptors of the processes in a session that have not ended."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            process = os.pidfd_open(int(entry.name))
        except ProcessLookupError:
            continue
        if _session_of(int(entry.name)) == session and not _has_ended(process, 0):
            members.append(process)
        else:
            os.close(process)
    return members


def _session_of(process: int) -> int | None:
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None


def _has_ended(process: int, milliseconds: int | None) -> bool:
    ended = select.poll()
    ended.register(process, select.POLLIN)
    return bool(ended.poll(milliseconds))


def read(suite: Suite, package: str, status: int, output: str) -> Result:
    """What the output of a package's tests says. Ginkgo prints one summary for a suite; a package may have several."""
    text = _COLOURS.sub("", output)
    summaries = _SUMMARY.findall(text)
    names = tuple(dict.fromkeys(name.strip() for name in _FAILED.findall(text)))
    failed = tuple(name for name in names if suite.reason(name) is None)
    if status != 0 and not (names and summaries):
        failed = (*failed, WHOLE)
    known = tuple(name for name in names if suite.reason(name) is not None)
    return Result(package, sum(int(count) for count, _ in summaries), failed, text, known)
