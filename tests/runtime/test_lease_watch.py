"""The watch of a Lease: what it shows, and what becomes of it when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from konverge.client import Forbidden, Unavailable
from konverge.objects.meta import Status
from konverge.runtime.lease_watch import LeaseWatch

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-27")]


def event(type: str, holder: str = "") -> Any:
    return SimpleNamespace(type=type, object={"spec": {"holderIdentity": holder}})


class Watched:
    """A client whose watches give these events, one watch after the other; an error ends one. The last stays open."""

    def __init__(self, *watches: list[Any]) -> None:
        self.watches = list(watches)
        self.opened: list[float] = []
        self.asked: list[tuple[Any, ...]] = []
        self.states: list[str | None] = []

    async def watch(self, resource: Any, namespace: str, field_selector: str) -> AsyncIterator[Any]:
        self.opened.append(asyncio.get_running_loop().time())
        self.asked.append((resource.plural, namespace, field_selector))
        for entry in self.watches.pop(0) if self.watches else ():
            if isinstance(entry, Exception):
                raise entry
            yield entry
        if not self.watches:
            await asyncio.Event().wait()

    def seen(self, lease: dict[str, Any] | None) -> bool:
        self.states.append(None if lease is None else lease["spec"]["holderIdentity"])
        return not self.states[-1]

    def following(self) -> LeaseWatch:
        return LeaseWatch(self, "op", "shop", self.seen, lambda: 5.0)  # type: ignore[arg-type]


ERRORS = [Unavailable(Status(message="away")), RuntimeError("the plugin is broken")]


@pytest.mark.parametrize("error", ERRORS, ids=["the server", "a plugin"])
async def test_a_watch_that_fails_is_opened_again_after_a_pause(error: Exception) -> None:
    watched = Watched([event("ADDED", "a"), error], [error], [], [event("ADDED", "b")])
    async with watched.following() as watch:
        await asyncio.sleep(4)
        assert (watched.states, watch.works) == (["a"], False)
        await asyncio.sleep(60)
        assert (watched.states, watch.works) == (["a", "b"], True)
    assert watched.opened == [0, 5, 10, 15]
    assert set(watched.asked) == {("leases", "shop", "metadata.name=op")}


async def test_who_may_not_watch_does_not_ask_again() -> None:
    watched = Watched([Forbidden(Status(message="no"))], [event("ADDED", "a")])
    async with watched.following() as watch:
        await asyncio.sleep(600)
        assert (watched.states, watched.opened, watch.works) == ([], [0], False)


async def test_a_lease_that_is_free_ends_the_waiting_and_any_other_change_does_not() -> None:
    loop = asyncio.get_running_loop()
    watched = Watched([event("ADDED", "a"), event("BOOKMARK"), event("MODIFIED", "b"), event("DELETED", "b")])
    async with watched.following() as watch:
        await watch.changed(15)
        assert (loop.time(), watched.states, watch.works) == (0, ["a", "b", None], False)
        await watch.changed(15)
        assert loop.time() == 15, "once for each change"
    busy = Watched([event("ADDED", "a"), event("MODIFIED", "b")])
    async with busy.following() as watch:
        await watch.changed(15)
        assert (loop.time(), watch.works) == (30, True)
    assert not [task for task in asyncio.all_tasks() if "watch lease" in task.get_name()]
