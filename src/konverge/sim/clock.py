"""The clock of a simulated cluster: hours pass when the test says so."""

from __future__ import annotations

import asyncio

from konverge import clock
from konverge.sim.loop import VirtualLoop


class RealTime(RuntimeError):
    """Time cannot be moved on a real event loop."""


class Clock:
    """Time as the cluster has it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return clock.now()

    async def advance(self, seconds: float) -> None:
        """Let time pass. All that is due on the way happens, each at its own time."""
        loop = self._virtual()
        if seconds < 0:
            raise ValueError("time goes forwards; the wall clock alone can be set back: jump()")
        await asyncio.sleep(seconds)
        await loop.idle()

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or back, as an administrator does. Timers do not notice."""
        self._virtual().jump_wall_clock(seconds)

    def _virtual(self) -> VirtualLoop:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise RealTime(
                "this loop runs on real time: use konverge.sim.run(main()), or @pytest.mark.virtual in tests"
            )
        return loop
