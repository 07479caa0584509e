"""A standby: it has everything ready, costs little, and takes over at once."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Recording
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.manager import LeaderElection
from tests.runtime.objects import SPACE, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-77")]


class Replica:
    """A manager that notes when it reconciled what, and what it asked the server."""

    def __init__(self, client: Client, name: str) -> None:
        self.recording = Recording(client)
        self.worked: list[tuple[float, str]] = []
        self.manager = Manager(self.recording, leader_election=LeaderElection(name="op", identity=name))
        self.manager.add(Controller(Secret, self.reconcile))
        self.stop = asyncio.Event()
        self.serving = asyncio.create_task(self.manager.serve(self.stop))

    async def reconcile(self, ctx: Context[Secret]) -> None:
        self.worked.append((asyncio.get_running_loop().time(), ctx.request.name))

    async def end(self) -> None:
        self.stop.set()
        await self.serving


async def test_a_standby_takes_over_at_once_without_listing_anything(server: ApiServer, client: Client) -> None:
    for name in ("a", "b"):
        await client.create(secret(name))
    first = Replica(client, "first")
    await asyncio.sleep(5)
    second = Replica(client, "second")
    await asyncio.sleep(60)
    assert [name for _, name in first.worked] == ["a", "b"]
    assert second.worked == []
    second.recording.calls.clear()
    released = asyncio.get_running_loop().time()
    await first.end()
    await asyncio.sleep(1)
    assert sorted(name for _, name in second.worked) == ["a", "b"]
    assert all(at - released < 1.0 for at, _ in second.worked)
    assert not [call for call in second.recording.calls if call.resource and call.resource.plural == "secrets"]
    await second.end()


async def test_what_changes_while_a_process_stands_by_costs_it_only_names(server: ApiServer, client: Client) -> None:
    first = Replica(client, "first")
    await asyncio.sleep(5)
    second = Replica(client, "second")
    await asyncio.sleep(5)
    for number in range(50):
        await client.create(secret(f"short-{number}"))
        await client.delete(Secret, f"short-{number}", SPACE)
    await client.create(secret("stays"))
    await asyncio.sleep(300)
    assert second.manager.engines["secret"].queue.pending() == []
    await first.end()
    await asyncio.sleep(1)
    assert [name for _, name in second.worked] == ["stays"]
    await second.end()


async def test_a_key_that_went_while_the_leader_was_dying_is_not_lost(server: ApiServer, client: Client) -> None:
    """What no cache shows any more must still come to the next leader: clean-ups may hang on it."""
    first = Replica(client, "first")
    await asyncio.sleep(5)
    second = Replica(client, "second")
    await client.create(secret("gone"))
    await asyncio.sleep(60)
    seen: list[str] = []
    second.manager.on_reconciled.append(lambda ended: seen.append(ended.key.name))
    await client.delete(Secret, "gone", SPACE)
    await first.end()
    await asyncio.sleep(1)
    assert seen == ["gone"]
    await second.end()
