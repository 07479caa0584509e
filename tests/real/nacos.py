"""Real Nacos servers as processes of this machine, each on a loopback address of its own with the usual ports.

The program is built by `programs.nacos_home`; a server lives in a folder, and finds its data there when it is started
again. It needs some 400 MB, and half a minute of a free core to start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from konverge.operators.nacos.server import HttpNacosServers, NacosError, Verdict, View, judge

T = TypeVar("T")
PATIENCE = 420.0
"""Seconds for a cluster to get somewhere, on a machine that is busy with other things."""
_OPENED = (
    "java.base/java.lang java.base/java.lang.reflect java.base/java.io java.base/java.math java.base/java.net "
    "java.base/java.nio java.base/java.nio.charset java.base/java.text java.base/java.time java.base/java.util "
    "java.base/java.util.concurrent java.base/java.util.concurrent.atomic java.base/java.util.concurrent.locks "
    "java.base/sun.nio.ch java.base/sun.net.util java.base/sun.reflect.generics.reflectiveObjects java.sql/java.sql"
)
"""What the serialization of Nacos 2.1.1 looks into, and a JDK after 8 keeps closed."""
_PROPERTIES = """\
server.servlet.contextPath=/nacos
spring.main.allow-circular-references=true
spring.mvc.pathmatch.matching-strategy=ant_path_matcher
nacos.core.auth.enabled=false
db.pool.config.connectionTimeout=60000
management.metrics.export.elastic.enabled=false
management.metrics.export.influx.enabled=false
"""


def command(
    program: Path, folder: Path, address: str, *, standalone: bool, name: str = "", hosts: str = ""
) -> list[str]:
    """The command line of a server; `prepare` writes its folder first.

    `name` is how it calls itself when not by its address; `hosts` is a file in which such names are found.
    """
    opened = [option for module in _OPENED.split() for option in ("--add-opens", f"{module}=ALL-UNNAMED")]
    mode = ["-Dnacos.standalone=true"] if standalone else ["-DembeddedStorage=true"]
    own = [f"-javaagent:{program / 'nacos.jar'}", f"-Dnacos.server.ip={name or address}", f"-Dserver.address={address}"]
    if hosts:
        own += [f"-Djdk.net.hosts.file={hosts}", "-Dsun.net.inetaddr.ttl=1", "-Dsun.net.inetaddr.negative.ttl=1"]
    home = [f"-Dnacos.home={folder}", "-Dserver.port=8848", "-Dlogging.config=classpath:quiet.xml"]
    classes = ["-cp", f"{program / 'nacos.jar'}{os.pathsep}{program / 'lib' / '*'}", "com.alibaba.nacos.RealNacos"]
    small = ["-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return [
        "java",
        *small,
        *opened,
        *own,
        *home,
        *mode,
        *classes,
        f"--spring.config.additional-location=file:{folder}/conf/",
    ]


def prepare(folder: Path, members: Sequence[str]) -> None:
    """The configuration of a server, and the list of all members where there are several."""
    conf = folder / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "application.properties").write_text(_PROPERTIES)
    if len(members) > 1:
        lines = [member if ":" in member else f"{member}:8848" for member in members]
        (conf / "cluster.conf").write_text("".join(f"{line}\n" for line in lines))


class RealCluster:
    """Servers named nacos-0, nacos-1, …, and the operator's client that asks them."""

    def __init__(self, program: Path, folder: Path, size: int) -> None:
        # Other test runs on this machine have other addresses.
        number = os.getpid() % 250 + 1
        self.addresses = {f"nacos-{i}": f"127.88.{number}.{i + 1}" for i in range(size)}
        self.servers = HttpNacosServers()
        self._program = program
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *pods: str) -> None:
        for pod in pods or self.addresses:
            folder, address = self._folder / pod, self.addresses[pod]
            prepare(folder, list(self.addresses.values()))
            line = command(self._program, folder, address, standalone=len(self.addresses) == 1)
            with (folder / "out.log").open("ab") as log:
                self._running[pod] = subprocess.Popen(line, stdout=log, stderr=log, cwd=folder)

    def join(self, pod: str) -> None:
        """A new server, which lists all; the others have their lists."""
        first = next(iter(self.addresses.values()))
        self.addresses[pod] = f"{first.rpartition('.')[0]}.{len(self.addresses) + 1}"
        self.start(pod)

    def list_members(self, pods: Sequence[str], *members: str) -> None:
        """Another list for servers that run, in one piece: as the loop in a container writes it."""
        for pod in pods:
            conf = self._folder / pod / "conf"
            (conf / "members.new").write_text("".join(f"{self.addresses[member]}:8848\n" for member in members))
            (conf / "members.new").replace(conf / "cluster.conf")

    def processes(self) -> dict[str, int]:
        return {pod: process.pid for pod, process in self._running.items()}

    def kill(self, *pods: str) -> None:
        """Kill servers at once, as on a machine that loses its power."""
        for pod in pods:
            process = self._running.pop(pod)
            process.kill()
            process.wait()

    def freeze(self, pod: str) -> None:
        self._running[pod].send_signal(signal.SIGSTOP)

    def thaw(self, pod: str) -> None:
        self._running[pod].send_signal(signal.SIGCONT)

    async def verdict(self) -> Verdict:
        views = await asyncio.gather(*(self._view(pod, address) for pod, address in self.addresses.items()))
        return judge(views, len(self.addresses))

    async def _view(self, pod: str, address: str) -> View:
        try:
            return View(pod=pod, address=address, members=await self.servers.nodes(address, timeout=10))
        except NacosError as error:
            return View(pod=pod, address=address, error=str(error))

    async def until(self, holds: Callable[[Verdict], bool]) -> Verdict:
        """The first verdict that meets the condition. A server that ended is started again, as kubelets do."""

        async def look() -> Verdict:
            for pod in [pod for pod, process in self._running.items() if process.poll() is not None]:
                self.start(pod)
            return await self.verdict()

        return await self._poll(look, holds)

    async def until_peers(self, pod: str, count: int) -> None:
        """Wait until a server reports so many peers in its raft groups."""

        async def own() -> int:
            members = await self.servers.nodes(self.addresses[pod], timeout=10)
            return next(len(member.peers) for member in members if member.host == self.addresses[pod])

        await self._poll(own, lambda peers: peers == count)

    async def until_listed(self, pod: str, count: int) -> None:
        """Wait until a server lists so many members."""

        async def listed() -> int:
            return len(await self.servers.nodes(self.addresses[pod], timeout=10))

        await self._poll(listed, lambda members: members == count)

    async def _poll(self, look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while not holds(seen := await look()):
            if loop.time() > deadline:
                raise AssertionError(f"the condition was not met; the last state is {seen}\n{self.logs()}")
            await asyncio.sleep(1)
        return seen

    def logs(self) -> str:
        """The last lines that each server logged."""
        logs = sorted(self._folder.glob("*/out.log"))
        return "\n".join(f"{log.parent.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs)

    def close(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self._running.values():
            process.wait()


@contextmanager
def real_cluster(program: Path, folder: Path, size: int) -> Iterator[RealCluster]:
    """A cluster that runs until the block ends."""
    if sys.platform != "linux":
        pytest.skip("servers need loopback addresses of their own, which only Linux has without being asked")
    cluster = RealCluster(program, folder, size)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
