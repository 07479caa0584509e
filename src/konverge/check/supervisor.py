"""Runs an operator, one incarnation after the other: after a crash that a plan asks for, after an end of its own."""

from __future__ import annotations

import asyncio

from konverge.check.gate.core import Gate
from konverge.check.locks import release
from konverge.check.model import Exit, Run
from konverge.check.operator import CannotStart, Incarnation, Operator
from konverge.sim.cluster import Cluster

RESTARTS = 3
"""How often an operator that ends by itself is started again."""
REVIVALS = 2
"""How often one that has ended for good in a step is started once more, in the next: users take settings back."""
PAUSES = (0.25, 0.5, 1.0)
"""Seconds before an operator that ended by itself is started again; the last of them from then on."""


class Supervisor:
    """Runs the operator, one incarnation after the other, and remembers how each ended."""

    def __init__(self, operator: Operator, cluster: Cluster, gate: Gate, run: Run) -> None:
        self._operator, self._cluster, self._gate, self._run = operator, cluster, gate, run
        self._crash = asyncio.Event()
        self._wanted, self._gone = asyncio.Event(), asyncio.Event()
        self._wanted.set()
        self._revival = asyncio.Event()
        self.incarnation: Incarnation | None = None
        self.gave_up = ""
        self.revivals = 0
        gate.crash = self.crash
        gate.note = run.hit.append

    def crash(self, why: str) -> None:
        """End the present incarnation, as soon as the caller waits for something."""
        self._run.hit.append(why)
        self._gate.recorder.down = True
        self._crash.set()

    async def stop(self) -> None:
        """End the operator until it is wanted again; returns when it is gone."""
        self._wanted.clear()
        self._gone.clear()
        self._gate.recorder.away = True
        self.crash("the operator is away")
        await self._gone.wait()

    def start(self) -> None:
        """After `stop`."""
        self._gate.recorder.away = False
        self._wanted.set()

    def revive(self) -> None:
        """Start an operator that has ended for good once more."""
        self.revivals += 1
        self._gate.recorder.down = True
        self._revival.set()

    async def serve(self) -> None:
        ends = 0
        recorder = self._gate.recorder
        while True:
            if not self._wanted.is_set():
                self._gone.set()
                await self._wanted.wait()
            recorder.starts()
            self._crash.clear()
            self.incarnation = await self._operator.start(self._cluster, self._gate)
            recorder.down = False
            ended = asyncio.create_task(self.incarnation.ended())
            crashed = asyncio.create_task(self._crash.wait())
            try:
                await asyncio.wait([ended, crashed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                recorder.down = True
                crashed.cancel()
                if not ended.done():
                    ended.cancel()
                await self._bury(self.incarnation)
            await release(self._cluster, [*recorder.locks, *recorder.leases])
            if self._crash.is_set():
                continue
            self._note_end(ended.result(), self.incarnation.exit_code)
            if ends >= RESTARTS:
                await self._give_up(f"it ended {ends + 1} times: {ended.result()}")
                ends = 0
                continue
            await asyncio.sleep(PAUSES[min(ends, len(PAUSES) - 1)])
            ends += 1

    async def _give_up(self, why: str) -> None:
        """Until it is revived; a crash that a plan asks for does the same. One that nothing disturbs and that has not
        read anything will not start either."""
        if not self._gate.recorder.reads and not self._run.plan.perturbations:
            raise CannotStart(f"the operator did not start (check its arguments and its environment): {why}")
        self.gave_up = why
        self._gate.recorder.down = False
        self._revival.clear()
        events = [asyncio.create_task(event.wait()) for event in (self._revival, self._crash)]
        try:
            await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for event in events:
                event.cancel()
        self.gave_up = ""

    async def _bury(self, incarnation: Incarnation) -> None:
        await incarnation.kill()
        number = self._gate.recorder.incarnation
        self._run.log += [f"{number}: {line}" for line in incarnation.log()]

    def _note_end(self, why: str, code: int | None) -> None:
        recorder = self._gate.recorder
        number, step = recorder.incarnation, recorder.step
        self._run.exits.append(Exit(incarnation=number, step=step, time=recorder.now(), code=code, error=why))
