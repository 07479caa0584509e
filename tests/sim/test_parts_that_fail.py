"""A part of the control plane that cannot go on ends the block that it runs beside, with the cause."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client
from konverge.runtime.engine import Engine
from konverge.sim.parts import Parts, running

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-01")]


async def broken(*_: object) -> None:
    await asyncio.sleep(5)
    raise LookupError("broken")


async def test_a_manager_that_dies_ends_the_control_plane(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "run", broken)
    parts = Parts(None, controllers=["deployment"], scheduler=False)

    async def serve() -> None:
        async with parts.at_work(client):
            await asyncio.Event().wait()

    with pytest.raises(LookupError, match="broken"):
        await serve()


async def test_a_service_that_dies_ends_the_block() -> None:
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("other")

    async def serve() -> None:
        async with running([("bad", broken()), ("other", other())]):
            await asyncio.Event().wait()

    with pytest.raises(LookupError, match="broken"):
        await serve()
    assert ended == ["other"]


async def test_services_end_with_the_block() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    async with running([("work", work())]):
        await asyncio.sleep(1)
        assert ended == []
    assert ended == ["work"]
