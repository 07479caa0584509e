"""The attack on lists finds nothing at the real server either: what it calls wrong would be wrong there, too."""

from __future__ import annotations

import pytest

from tests.apiserver.robustness.lists import Attack, api_of
from tools.control_plane import ControlPlane


@pytest.mark.spec("T-01")
async def test_lists_of_the_real_server_are_states_of_its_history(real_server: ControlPlane) -> None:
    api, pool = api_of(real_server.url, real_server.token, str(real_server.ca_file))
    try:
        attack = Attack(api, lists=100, paged=100)
        history = await attack.run()
    finally:
        await pool.aclose()
    assert attack.problems(history) == {}
    assert len(attack.listed) == 100
