"""A server process is killed with SIGKILL while clients write, read and watch over sockets."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from konverge.apiserver import ApiServer
from konverge.wire.pool import ConnectionPool
from tests.apiserver.api import Api
from tests.apiserver.robustness.story import judge
from tests.apiserver.robustness.watches import Watcher
from tests.apiserver.robustness.world import Client, World, listed

PROGRAM = Path(__file__).with_name("server_process.py")
KILLS = 100


class ProcessWorld(World):
    """A server as a process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._process: asyncio.subprocess.Process
        self._pool: ConnectionPool

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(self._folder), stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        url, token = (await self._process.stdout.readline()).decode().split()
        self._pool = ConnectionPool(url)
        await self.born(Api(cast("ApiServer", SimpleNamespace(token=token, transport=self._pool))))

    async def kill(self) -> None:
        self._process.kill()
        await self._process.communicate()
        self.died()
        await self._pool.aclose()


@pytest.mark.long
@pytest.mark.limit(900)
@pytest.mark.blocking("the order of a few thousand operations is looked for in one go")
@pytest.mark.spec("T-01", "T-10", "S-14")
async def test_what_clients_saw_of_a_server_that_is_killed_is_linearizable(tmp_path: Path) -> None:
    world, rng = ProcessWorld(tmp_path / "data"), random.Random(1)
    await world.start()
    end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    watchers = [Watcher(world) for _ in range(2)]
    for watcher in watchers:
        await watcher.begin()
    clients = [Client(world, f"c{number}", rng.random(), rate=100) for number in range(4)]
    watching = [asyncio.create_task(watcher.run(end)) for watcher in watchers]
    working = [asyncio.create_task(client.run(1_000_000)) for client in clients]
    for _ in range(KILLS):
        await world.until(len(world.history) + rng.randrange(30))
        await world.kill()
        await world.start()
    for task in working:
        task.cancel()
    await asyncio.wait(working)
    final = await world.with_server(listed)
    end.set_result(final.revision)
    await asyncio.gather(*watching)
    await world.kill()
    assert world.lives == KILLS + 1
    judge(world, watchers, final)
