"""An operator of any language: a program, run as a child process behind the gate.

The gate listens on loopback, and all that the program is given leads there: a kubeconfig, a home and a temporary folder
of its own; or, as in a pod, the address in its environment and a mounted token. Of our own environment it gets only
what programs need to run (`PASSED_ON`). A crash is SIGKILL to its whole session; when we are killed ourselves, it goes
too (see `konverge.sim.processes.process.Spawner`).
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.certificates import Certificates, make
from konverge.apiserver.http.pipeline import refusal
from konverge.check.child_log import ChildLog
from konverge.check.gate.core import Gate
from konverge.check.isolation import is_isolated
from konverge.check.model import Setup, Subject
from konverge.check.operator import CannotStart, Incarnation
from konverge.sim.processes.process import Process, Spawner, StartError
from konverge.wire.server import Server

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster

HOST = "127.0.0.1"
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT")
KUBECONFIG = "{kubeconfig}"
"""In the command or its environment: the path of the kubeconfig, for programs that take it another way."""
NO_ACCOUNT = "none"
"""The token of an operator without an account: the gate replaces it, and some clients refuse to start with no token."""
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def home_namespace(setup: Setup) -> str:
    """Where the operator itself would be installed."""
    return setup.account.partition("/")[0] or setup.namespace


@functools.cache
def _certificates() -> Certificates:
    """One for all runs of a worker: keys cost time."""
    return make((HOST,))


class Child:
    """Starts the program of a subject; `token` is what an account in a pod would have mounted."""

    def __init__(self, subject: Subject, setup: Setup, token: str = "") -> None:
        self._subject, self._setup, self._token = subject, setup, token
        self._spawner = Spawner()
        self._home = Path(tempfile.mkdtemp(prefix="konverge-check-"))
        self._spawner.temporary = (str(self._home),)
        self.name = Path(subject.command[0]).name

    async def start(self, cluster: Cluster, gate: Gate) -> Incarnation:
        server = Server(gate.handle, refusal=refusal)
        environment = dict(self._environment())
        if self._subject.in_cluster:
            certificates = _certificates()
            await server.start(HOST, ssl=certificates.context())
            self._mount(certificates.authority)
            environment |= {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(server.port)}
        else:
            await server.start(HOST)
            environment["KUBECONFIG"] = str(self._kubeconfig(f"http://{HOST}:{server.port}"))
        log = ChildLog()
        kubeconfig = environment.get("KUBECONFIG", "")
        environment = {name: value.replace(KUBECONFIG, kubeconfig) for name, value in environment.items()}
        command = [argument.replace(KUBECONFIG, kubeconfig) for argument in self._subject.command]
        folder = Path(self._subject.folder or self._home)
        try:
            process = await self._spawner.start(command, environment, folder, log.receive)
        except (StartError, OSError) as error:
            await server.close(grace=0)
            raise CannotStart(f"{self._subject.command[0]} cannot be started: {error}") from error
        gate.recorder.at_work = functools.partial(seconds_at_work, process.pid)
        return _Running(process, server, log)

    async def aclose(self) -> None:
        """After the last incarnation has ended."""
        await self._spawner.aclose()
        await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

    # -------------------------------------------------------------- what it is given

    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        temporary = self._home / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**passed, "HOME": str(self._home), "TMPDIR": str(temporary), **self._subject.environment}

    def _kubeconfig(self, url: str) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "check",
            "clusters": [{"name": "check", "cluster": {"server": url}}],
            "users": [{"name": "operator", "user": {"token": self._token or NO_ACCOUNT}}],
            "contexts": [
                {
                    "name": "check",
                    "context": {"cluster": "check", "user": "operator", "namespace": home_namespace(self._setup)},
                }
            ],
        }
        path = self._home / "kubeconfig"
        path.touch(0o600)
        path.write_bytes(msgspec.json.encode(config))
        return path

    def _mount(self, authority: bytes) -> None:
        """The files of a pod's account, in the mount namespace of this worker."""
        if not is_isolated():
            raise CannotStart(
                "`in_cluster` mounts a token, for which the worker needs a mount namespace of its own, and has none; "
                f"leave it out, and name the kubeconfig as {KUBECONFIG} where the program wants it"
            )
        token = self._token or NO_ACCOUNT
        files = {"token": token.encode(), "ca.crt": authority, "namespace": home_namespace(self._setup).encode()}
        ACCOUNT.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (ACCOUNT / name).write_bytes(content)


def seconds_at_work(pid: int) -> float:
    """How long the threads of a process have run, or waited for a processor: they had something to do."""
    total = 0
    with suppress(OSError, ValueError):
        for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - called twenty times a second
            with open(f"/proc/{pid}/task/{name}/schedstat", "rb") as file:  # noqa: PTH123
                ran, waited = file.read().split()[:2]
            total += int(ran) + int(waited)
    return total / 1e9


class _Running:
    def __init__(self, process: Process, server: Server, log: ChildLog) -> None:
        self._process, self._server, self._log = process, server, log
        self.exit_code: int | None = None

    async def ended(self) -> str:
        self.exit_code = code = await self._process.wait()
        self._log.finish()
        return f"it ended with exit code {code}: {self._log.reason()}"

    async def kill(self) -> None:
        await self._process.end()
        self._log.finish()
        with suppress(Exception):
            await self._server.close(grace=0)

    def log(self) -> list[str]:
        return self._log.lines()
