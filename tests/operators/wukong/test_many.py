"""Many machines at once: all come up, what is written is bounded, and then nothing is asked or written at all."""

from __future__ import annotations

import asyncio

import pytest

from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import world

MANY = 60


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.limit(180)
@pytest.mark.spec("W-14", "W-15")
async def test_many_machines_at_once() -> None:
    async with world(timings=QUICK) as w:
        w.writes()
        for number in range(MANY):
            await w.create(f"m{number}", cpu=1, memory="64Mi")
        for number in range(MANY):
            await w.phase("Running", f"m{number}")
        assert len(w.writes()) < 30 * MANY
        assert w.manager.engines["wukong"].numbers.errors == 0
        await asyncio.sleep(120)
        w.recording.calls.clear()
        await asyncio.sleep(600)
        assert w.recording.calls == []
