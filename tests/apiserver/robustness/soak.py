"""A server under constant change: what it holds (objects in memory, descriptors) must reach a plateau.

    python -m tests.apiserver.robustness.soak --minutes 10      # on the clock of this machine, over sockets

Objects come and go, are updated and applied, events expire, watches open and end, clients come back.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

from konverge.apiserver import ApiServer
from konverge.wire.errors import WireError
from konverge.wire.pool import ConnectionPool
from tests.apiserver.api import APPLY, CONFIG_MAPS, MERGE, Api

EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Level(NamedTuple):
    """What the process holds."""

    blocks: int
    """Of Python's allocator: nearly every object is one."""
    descriptors: int


def level() -> Level:
    gc.collect()
    return Level(sys.getallocatedblocks(), len(list(Path("/proc/self/fd").iterdir())))


class Churn:
    """Changes of one client, `pace` seconds apart on average."""

    def __init__(self, api: Api, seed: int, pace: float) -> None:
        self._api, self._rng, self._pace = api, random.Random(seed), pace
        self._numbers = itertools.count()
        self._name = f"n{seed}"

    async def write(self) -> None:
        while True:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace))
            await self._rng.choice((self._replace, self._patch, self._apply, self._event, self._lease))()

    async def watch(self) -> None:
        while True:
            seconds = self._rng.randrange(1, 300)
            path = self._rng.choice((CONFIG_MAPS, EVENTS, LEASES))
            with suppress(WireError):
                async with self._api.watch(path, timeoutSeconds=seconds, allowWatchBookmarks="true") as watch:
                    await watch.until_end()

    async def _replace(self) -> None:
        name = f"{self._name}-{self._rng.randrange(20)}"
        await self._api.send("DELETE", f"{CONFIG_MAPS}/{name}")
        data = {"value": "x" * self._rng.randrange(2000)}
        await self._api.send("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": data})

    async def _patch(self) -> None:
        path = f"{CONFIG_MAPS}/{self._name}-{self._rng.randrange(20)}"
        await self._api.send("PATCH", path, {"data": {"value": str(next(self._numbers))}}, content_type=MERGE)

    async def _apply(self) -> None:
        name = f"{self._name}-applied"
        data = {f"k{self._rng.randrange(5)}": str(next(self._numbers))}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        query = {"fieldManager": f"m{self._rng.randrange(3)}", "force": "true"}
        await self._api.send("PATCH", f"{CONFIG_MAPS}/{name}", body, query=query, content_type=APPLY)

    async def _event(self) -> None:
        name = f"{self._name}.{next(self._numbers)}"
        involved = {"kind": "ConfigMap", "name": self._name, "namespace": "default"}
        await self._api.send("POST", EVENTS, {"metadata": {"name": name}, "involvedObject": involved, "reason": "Soak"})

    async def _lease(self) -> None:
        name = f"{self._name}-{self._rng.randrange(3)}"
        body = {"metadata": {"name": name}, "spec": {"holderIdentity": str(next(self._numbers))}}
        if (await self._api.send("PUT", f"{LEASES}/{name}", body)).status == 404:
            await self._api.send("POST", LEASES, body)


async def soak(api: Api, *, seconds: float, samples: int, pace: float) -> list[Level]:
    """The levels at equal distances."""
    churns = [Churn(api, seed, pace) for seed in range(4)]
    tasks = [asyncio.create_task(work()) for churn in churns for work in (churn.write, churn.watch)]
    levels = []
    try:
        for _ in range(samples):
            await asyncio.sleep(seconds / samples)
            assert not any(task.done() for task in tasks), "a client ended"
            levels.append(level())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return levels


async def over_sockets(minutes: float) -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        async with ApiServer(data_dir=Path(folder) / "data") as server, ConnectionPool(await server.listen()) as pool:
            api = Api(cast("ApiServer", SimpleNamespace(token=server.token, transport=pool)))
            return await soak(api, seconds=minutes * 60, samples=20, pace=0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    for number, held in enumerate(asyncio.run(over_sockets(parser.parse_args().minutes)), 1):
        print(f"{number:3} {held.blocks:9} blocks {held.descriptors:4} descriptors")


if __name__ == "__main__":
    main()
