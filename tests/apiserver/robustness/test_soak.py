"""Hours of churn on virtual time: what the server holds reaches a plateau."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api
from tests.apiserver.robustness.soak import soak
from tests.apiserver.robustness.story import MEMORY

HOUR = 3600.0


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.limit(600)
@pytest.mark.spec("T-13")
async def test_memory_and_descriptors_reach_a_plateau() -> None:
    """Events are kept for an hour and the history for five minutes: after that nothing may grow."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        async with ApiServer(data_dir=Path(folder) / "data") as server:
            levels = await soak(Api(server), seconds=3 * HOUR, samples=12, pace=4.0)
    early, late = levels[5:8], levels[9:]
    most = max(held.blocks for held in early)
    assert max(held.blocks for held in late) < most * 1.03, [held.blocks for held in levels]
    assert max(held.descriptors for held in late) <= max(held.descriptors for held in early)
