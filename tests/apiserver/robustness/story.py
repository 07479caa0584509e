"""One seed: clients, watchers and faults on one server, and whether what was seen could have been seen.

python -m tests.apiserver.robustness.story 17      # one seed, with what its faults were
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

from konverge.apiserver import aside
from konverge.apiserver.storage import sqlite as journal
from konverge.apiserver.storage.worker import Worker
from konverge.sim.loop import VirtualLoop
from tests.apiserver.robustness import linearizability, watches
from tests.apiserver.robustness.disk import Plan, SimulatedDisk
from tests.apiserver.robustness.model import Listed, State, step, values_seen, with_what_was_seen
from tests.apiserver.robustness.watches import Watcher
from tests.apiserver.robustness.world import Client, SimulatedWorld, World, listed

CLIENTS, OPERATIONS, WATCHERS = 4, 30, 2
FAULTS = ("kill", "power", "full", "broken", "one call", "clock", "stop")
CODES = (
    apsw.SQLITE_FULL,
    apsw.SQLITE_IOERR_WRITE,
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_READ,
    apsw.SQLITE_IOERR_TRUNCATE,
)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder whose syncs take no time, where there is one."""
ASIDE_FROM, ASIDE_SECONDS = 1024, 0.05
"""Some of the objects are computed aside, where others come in between."""
JOURNAL_SECONDS = 0.02
"""How long a commit takes, at most: long enough for others to come in between."""


class Story:
    """What happened with one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.faults: list[str] = []
        self.operations = 0
        self.lives = 0

    def run(self) -> None:
        """Raises AssertionError where a promise is broken."""
        with (
            tempfile.TemporaryDirectory(dir=MEMORY) as folder,
            asyncio.Runner(loop_factory=lambda: VirtualLoop(self.seed)) as runner,
        ):
            runner.run(self._play(Path(folder) / "data"))

    async def _play(self, folder: Path) -> None:
        disk = SimulatedDisk(self.seed)
        with (
            mock.patch.object(journal, "CHECKPOINT_BYTES", 64 * 1024),
            mock.patch.object(journal, "LOG_BYTES", 128 * 1024),
            mock.patch.object(Worker, "submit", submit_late(self.rng)),
            mock.patch.object(aside, "FROM", ASIDE_FROM),
            mock.patch.object(aside, "PAUSE", ASIDE_SECONDS),
        ):
            world = SimulatedWorld(folder, disk)
            await world.start()
            await self._act(world)

    async def _act(self, world: SimulatedWorld) -> None:
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        clients = [Client(world, f"c{number}", self.rng.random()) for number in range(CLIENTS)]
        watchers = [Watcher(world) for _ in range(WATCHERS)]
        for watcher in watchers:
            await watcher.begin()
        watching = asyncio.gather(*(watcher.run(end) for watcher in watchers))
        working = asyncio.gather(*(client.run(OPERATIONS) for client in clients))
        try:
            await self._break(world, working)
            await working
            final = None
            while final is None:
                final = await world.with_server(listed)
                await asyncio.sleep(1)
            end.set_result(final.revision)
            await watching
        finally:
            working.cancel()
            watching.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)
            await world.stop()
        self.operations, self.lives = len(world.history), world.lives
        judge(world, watchers, final)

    async def _break(self, world: SimulatedWorld, working: asyncio.Future[Any]) -> None:
        """One fault after the other, until the clients have done their work."""
        while True:
            await asyncio.wait((working,), timeout=self.rng.uniform(0.2, 2.0))
            if working.done():
                break
            fault = self.rng.choice(FAULTS)
            self.faults.append(f"{asyncio.get_running_loop().time():.3f} {fault}")
            await self._fault(world, fault)
        world.disk.work()

    async def _fault(self, world: SimulatedWorld, fault: str) -> None:
        rng, disk = self.rng, world.disk
        if fault in ("kill", "power"):
            world.die(power=fault == "power")
            disk.plan = rng.choice((disk.plan, _once(rng, 60)))  # the start that follows may meet a fault too
            await asyncio.sleep(rng.uniform(0, 2))
            await world.start()
        elif fault == "stop":
            await world.stop()
            await world.start()
        elif fault == "clock":
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.jump_wall_clock(rng.choice((-86_400.0, -30.0, 30.0, 86_400.0)))
        elif fault == "one call":
            disk.plan = _once(rng, 200)
        else:
            code = apsw.SQLITE_FULL if fault == "full" else rng.choice(CODES[1:])
            share = rng.choice((0.2, 1.0))
            disk.plan = lambda call, path: code if call != "read" and rng.random() < share else None
            await asyncio.sleep(rng.uniform(0, 5))
            disk.work()


def _once(rng: random.Random, most: int) -> Plan:
    """One of the next calls fails."""
    left, code = rng.randrange(most), rng.choice(CODES)

    def plan(call: str, path: str) -> int | None:
        nonlocal left
        left -= 1
        return code if left == -1 else None

    return plan


def submit_late(rng: random.Random) -> Callable[..., None]:
    """Jobs of the journal take a while, one after the other."""

    def submit(self: Worker, job: Callable[[], Any], done: Callable[..., None]) -> None:
        def work() -> None:
            try:
                result, error = job(), None
            except Exception as raised:
                result, error = None, raised
            done(result, error)

        loop = asyncio.get_running_loop()
        free = max(getattr(self, "free", 0.0), loop.time()) + rng.uniform(0, JOURNAL_SECONDS)
        self.free = free  # type: ignore[attr-defined]
        loop.call_at(free, work)

    return submit


def judge(world: World, watchers: list[Watcher], final: Listed) -> None:
    """Raises AssertionError where what was seen could not have been seen of one server without faults."""
    changes = watches.check(watchers, final)
    seen = values_seen(world.history)
    for change in changes.values():
        if change.type != "DELETED":
            assert seen.setdefault(change.value, change.revision) == change.revision
    everything = any(watcher.saw_everything for watcher in watchers)
    history = with_what_was_seen(world.history, seen, everything=everything)
    verdict = linearizability.check(history, State(), step)
    assert verdict.linearizable, _explained(world, verdict)


def _explained(world: World, verdict: linearizability.Verdict) -> str:
    rest = [operation for operation in world.history if operation not in verdict.longest]
    lines = [*map(str, verdict.longest[-10:]), "and none of these could follow:", *map(str, rest[:10])]
    return "no order explains this history:\n" + "\n".join(lines)


def main(seed: str) -> None:
    story = Story(int(seed))
    try:
        story.run()
    finally:
        print("\n".join(story.faults))
        print(f"{story.operations} operations, {story.lives} lives")


if __name__ == "__main__":
    main(*sys.argv[1:])
