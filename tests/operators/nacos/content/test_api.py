"""The client of content against simulated servers of both lines; the real lane has the same of a real one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from konverge.operators.nacos.content.api import Login
from tests.operators.nacos.content.contract import check_namespaces_and_configs, check_users
from tests.operators.nacos.content.test_accounts import AUTH
from tests.operators.nacos.content.world import SECOND, THIRD, ContentWorld
from tests.operators.nacos.world import a_simulated_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-31")]


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
async def test_the_calls_do_what_they_say(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.secret("admin", username="nacos", password="admins-own")
        await world.up("nacos", {**spec, **AUTH})
        await world.advance(60.0)
        servers = ContentWorld(world, simulated).servers
        await check_namespaces_and_configs(servers)
        await check_users(replace(servers, login=Login("nacos", "admins-own")))
