"""A Wukong's life on a simulated cluster, from nothing to running and back."""

from __future__ import annotations

import pytest

from tests.operators.wukong.world import MODES, NAME, world

pytestmark = pytest.mark.virtual


@pytest.mark.spec("W-02", "W-05", "W-07", "W-08", "W-09")
@pytest.mark.parametrize("mode", MODES)
async def test_a_new_machine_comes_up(mode: str) -> None:
    async with world(cdi=mode) as w:
        wukong = await w.running()
        print(wukong.status)
