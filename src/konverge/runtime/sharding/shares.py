"""A manager's controllers and the share of its replica: the gates of their queues follow it.

A key that leaves the share: what waits is dropped, what is in work may finish within a limit and is then cancelled, and
is cancelled at once when our Lease is not valid any more.

A slot that comes: its last owner may have written a moment ago. So its keys are queued only when the caches show what
the server has now, else a reconcile could act on a state older than the last owner's writes. A share that we had until
our Lease was not valid for a while, and that has not moved, has no other writer: it goes on at once. (Comparing then
would cost the most when the server has the least to give: it was too slow to renew Leases.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from konverge.cache.informer import Informer
from konverge.client import Client, ClientError
from konverge.observe.health import Health
from konverge.observe.metrics import Numbers
from konverge.runtime.elector import Fenced
from konverge.runtime.engine import Engine
from konverge.runtime.sharding.assignment import Member
from konverge.runtime.sharding.declare import Sharding
from konverge.runtime.sharding.membership import Began, Ended, ShareChanged
from konverge.runtime.sharding.numbers import sharding_metrics
from konverge.runtime.sharding.replica import Replica
from konverge.runtime.sharding.selecting import SelectedShare
from konverge.workqueue import GatedQueue

PATIENCE = 60.0
"""Seconds until a cache that does not show what the server has is asked again, on another connection."""
RETRY = 1.0
"""Seconds until caches that could not be compared with the server are compared again."""

_log = logging.getLogger("konverge.sharding")


class Shares:
    """The engines of one manager, each working on its part of the keys."""

    def __init__(self, client: Client, sharding: Sharding, engines: Mapping[str, Engine[Any]]) -> None:
        self.replica = Replica(client, sharding, self._share_changed)
        self.selected = SelectedShare() if sharding.by == "namespace" else None
        """What the server is asked for, where caches hold our own share alone."""
        self._engines = engines
        self._working: list[Engine[Any]] = []
        self._open: frozenset[int] = frozenset()
        """Slots of our share that the caches are known to show."""
        self._kept: tuple[Member | None, int, frozenset[int]] = (None, 0, frozenset())
        """What was open when our Lease ran out: of which life, and in which epoch."""
        self._resumed: set[Engine[Any]] = set()
        """Engines whose gates are open again for what they had."""
        self._changed = asyncio.Event()
        self._changes = 0

    def fenced(self, client: Client) -> Client:
        """Writes for a key only while it is ours."""
        return self.replica.fence.client(client)

    def fenced_for_leader(self, client: Client) -> Client:
        """Writes only while this replica is the first of the group."""
        return Fenced(self.fenced(client), self.replica.elector)

    def selecting(self, client: Client) -> Client:
        """For caches: asks for our share alone, where the server can do that."""
        return client if self.selected is None else self.selected.client(client)

    async def prepare(self, client: Client) -> None:
        """Before the caches fill."""
        if self.selected is not None:
            whole = [n for n, e in self._engines.items() if not e.controller.kind.resource.namespaced]
            if whole:
                raise ValueError(f"sharding by namespace: {', '.join(whole)} has a kind without one; share it by='key'")
            await self.selected.begin(client, [engine.caches for engine in self._engines.values()])

    def report(self, numbers: Numbers, health: Health) -> None:
        """Make the group and our part in it known to metrics and probes."""
        name, replica = self.replica.sharding.name, self.replica
        numbers.leaders[name] = lambda: replica.is_first
        numbers.more.append(partial(sharding_metrics, self))
        health.ready["sharding"] = replica.not_ready
        health.remarks["sharding"] = replica.remark

    def admits(self, key: Hashable) -> bool:
        return self.replica.slot_of(key) in self._open

    def keys_owned(self) -> int:
        """Objects of the controllers' kinds whose keys are ours."""
        return sum(self.admits(key) for engine in self._engines.values() for key, _ in engine.caches.primary.items())

    # -------------------------------------------------------------- life

    @asynccontextmanager
    async def running(self, informers: Iterable[Informer]) -> AsyncIterator[None]:
        """Take part in the group inside the block. The caches are synced."""
        async with self.replica.running(), asyncio.TaskGroup() as group:
            following = group.create_task(self._follow(list(informers)), name="shards: caches")
            try:
                yield
            finally:
                following.cancel()

    async def start(self, engine: Engine[Any]) -> None:
        """A controller runs from now on."""
        gate = _gate(engine)
        step, slot_of = self.replica.step, self.replica.slot_of
        gate.on_begin = lambda key: step(Began(slot_of(key)))
        gate.on_done = lambda key: step(Ended(slot_of(key)))
        self._working.append(engine)
        gate.set_gate(self.admits)
        await engine.take_over()

    # -------------------------------------------------------------- following the share

    def _share_changed(self, change: ShareChanged) -> None:
        membership = self.replica.membership
        self._changes += 1
        self._changed.set()
        if change.at_once:
            self._kept = (membership.me, membership.assignment.epoch, self._open)
        self._open -= change.lost
        if change.gained and self._kept[:2] == (membership.me, membership.assignment.epoch):
            self._open |= change.gained & self._kept[2]
            self._resumed.update(self._working)
        for engine in self._working:
            gate = _gate(engine)
            gate.set_gate(self.admits)
            if engine.object_tasks is not None:
                engine.object_tasks.let_go(within=0.0 if change.at_once else self.replica.sharding.drain_timeout)
            outside = [key for key in gate.in_work() if not self.replica.owns(key)]
            if change.at_once:
                self._cancel(engine, outside)
            elif outside:
                limit = self.replica.sharding.drain_timeout
                asyncio.get_running_loop().call_later(limit, self._cancel, engine, outside)

    def _cancel(self, engine: Engine[Any], keys: Iterable[Hashable]) -> None:
        """Cancel the reconciles of these keys that are still in work and not ours; again until they have ended."""
        late = [key for key in _gate(engine).in_work() if key in keys and not self.replica.owns(key)]
        for key in late:
            _log.warning("%s %s is cancelled: the key moves to another replica", engine.controller.name, key)
            engine.cancel(key, "cancelled: the key moves to another replica")
        if late:
            limit = max(1.0, self.replica.sharding.drain_timeout)
            asyncio.get_running_loop().call_later(limit, self._cancel, engine, late)

    async def _follow(self, informers: list[Informer]) -> None:
        """Open the gates for what came to our share, when the caches show it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            changes, share = self._changes, self.replica.membership.share
            gained = share - self._open
            await self._take_over(self._resumed)
            try:
                await self._select(self.replica.membership.assigned(), informers)
                if gained:
                    await _show_present(informers)
            except (ClientError, TimeoutError) as error:
                _log.warning(
                    "the caches cannot be compared with the server, trying again: %s", str(error) or "no answer"
                )
                await asyncio.sleep(RETRY)
                self._changed.set()
                continue
            if gained and changes == self._changes:  # else a slot may have gone and come back in the meantime
                self._open = share
                await self._take_over(set(self._working))

    async def _take_over(self, engines: set[Engine[Any]]) -> None:
        while engines:
            engine = engines.pop()
            _gate(engine).set_gate(self.admits)
            await engine.take_over()

    async def _select(self, share: frozenset[int], informers: list[Informer]) -> None:
        """Let the caches hold this share."""
        if self.selected is not None and self.selected.works:
            # A reconcile that finishes still reads what we had.
            await self.replica.wait_until(lambda: self.replica.membership.working.keys() <= share)
            await self.selected.cover(share, informers)


async def _show_present(informers: list[Informer]) -> None:
    """Wait until the caches show what the server has now."""
    for informer in informers:
        for namespace in (informer.spec.namespaces or ("",)) if informer.served else ():
            mark = informer.mark(namespace)
            try:
                async with asyncio.timeout(PATIENCE):
                    await informer.wait_for_present(namespace, mark)
            except TimeoutError:
                informer.restart_watch(namespace)
                raise


def _gate(engine: Engine[Any]) -> GatedQueue[Any]:
    assert engine.gate is not None
    return engine.gate
