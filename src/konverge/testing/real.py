"""The fixture `real_cluster`: a cluster on sockets and on the machine's clock, for child processes.

It has a thread and a loop of its own, so that it answers while a test waits for a child process in a blocking call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from konverge.client import Client, load_config
from konverge.sim import Cluster

if TYPE_CHECKING:
    from konverge.runtime.webhooks import Loopback

T = TypeVar("T")


class RealCluster:
    """A cluster that other processes can reach.

    def test_the_program(real_cluster):
        subprocess.run(["./manager", "--once"], env=os.environ | real_cluster.environment, check=True)
    """

    def __init__(self, cluster: Cluster, loop: asyncio.AbstractEventLoop, url: str, kubeconfig: Path) -> None:
        self.url = url
        self.kubeconfig = kubeconfig
        """The path of a kubeconfig for the administrator."""
        self.environment = {"KUBECONFIG": str(kubeconfig)}
        """What a child process needs in its environment; no proxy stands between it and the cluster."""
        self.environment |= {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
        self.client = self.connect("konverge")
        """A client for the test, over the socket."""
        self.server = cluster.server
        """The API server behind it; it runs on a loop of its own."""
        self._cluster = cluster
        self._loop = loop

    def connect(self, agent: str) -> Client:
        """A client over the socket for a program of this name. Close it, or use it in `async with`."""
        return Client.connect(load_config(kubeconfig=self.kubeconfig), user_agent=agent)

    def webhook_place(self) -> Loopback:
        """Where the webhooks of an operator on this cluster are served: on this machine, over HTTPS."""
        from konverge.runtime.webhooks.local import Loopback

        return Loopback()

    async def settle(self, *, quiet: float = 1.0, limit: float = 60.0) -> None:
        """Until nothing has changed for `quiet` seconds. Raises Unsettled."""
        await self.call(lambda cluster: cluster.settle(quiet=quiet, limit=limit))

    async def call(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        """Do something with the cluster behind it, on its own loop.

        await real_cluster.call(lambda cluster: cluster.recover_node("node-1"))
        """
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_on(work, self._cluster), self._loop))


async def _on(work: Callable[[Cluster], Awaitable[T]], cluster: Cluster) -> T:
    return await work(cluster)


@contextmanager
def serving(folder: Path, *, tls: bool = True, **arguments: Any) -> Iterator[RealCluster]:
    """A cluster that serves on a free port inside the block; its kubeconfig is written to `folder`."""
    started: list[RealCluster | BaseException] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def live() -> None:
        try:
            async with Cluster(**arguments) as cluster:
                url = await cluster.listen(tls=tls)
                path = _write(folder, cluster.kubeconfig(url))
                started.append(RealCluster(cluster, asyncio.get_running_loop(), url, path))
                ready.set()
                await stop.wait()
        except BaseException as error:
            started.append(error)
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(live()), name="real cluster")
    thread.start()
    ready.wait()
    cluster = started[0]
    if isinstance(cluster, BaseException):
        thread.join()
        raise cluster
    try:
        yield cluster
    finally:
        if thread.is_alive():
            cluster._loop.call_soon_threadsafe(stop.set)
        thread.join()
    if len(started) > 1 and isinstance(started[1], BaseException):
        raise started[1]


def _write(folder: Path, kubeconfig: dict[str, Any]) -> Path:
    import yaml

    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
    return path
