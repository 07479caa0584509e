"""The manager's own tasks outlive what goes wrong in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import Event
from konverge.observe.events import EventRecorder
from konverge.runtime import LeaderElector
from tests.runtime.objects import SPACE, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-05")]


@pytest.mark.spec("R-30")
async def test_an_event_that_cannot_be_written_costs_itself(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    body = EventRecorder._body

    def fails(recorder: EventRecorder, occurrence: Any) -> dict[str, Any]:
        if occurrence.reason == "Bad":
            raise ValueError("cannot be encoded")
        return body(recorder, occurrence)

    monkeypatch.setattr(EventRecorder, "_body", fails)
    made = await client.create(secret("a"))
    recorder = EventRecorder(client, "c")
    task = asyncio.create_task(recorder.run())
    for reason in ("First", "Bad", "Last"):
        recorder.event(reason, "something happened", about=made)
    await asyncio.sleep(1)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert sorted(event.reason for event in await client.list(Event, SPACE)) == ["First", "Last"]


@pytest.mark.spec("R-27")
async def test_an_elector_tries_again_whatever_happened(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    observe = LeaderElector._observe
    attempts: list[float] = []

    async def fails(elector: LeaderElector) -> None:
        attempts.append(asyncio.get_running_loop().time())
        if len(attempts) < 3:
            raise ValueError("a plugin failed in its own way")
        await observe(elector)

    monkeypatch.setattr(LeaderElector, "_observe", fails)
    elector = LeaderElector(client, "op", SPACE, identity="me")
    async with elector.leading():
        assert elector.is_leader
    assert len(attempts) == 3
    assert attempts[2] >= 4  # with the usual pause
