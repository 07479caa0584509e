"""The shell around the protocol: keeps our Lease, watches the group, does the sharder's work when elected.

What is decided is in `membership` and `sharder`; here are the requests and the timers. Three things run beside each
other: the renewal of our Lease, which is also how we acknowledge; the end of its validity; and the election, whose
winner publishes assignments.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from konverge import clock
from konverge.cache.informer import Informer
from konverge.cache.record import Key
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change
from konverge.client import AlreadyExists, Client, ClientError, Conflict, NotFound
from konverge.observe.repeated import Repeated
from konverge.runtime.elector import JITTER, Fenced, LeaderElector, LeadershipLost
from konverge.runtime.lease_watch import LEASES
from konverge.runtime.sharding.assignment import Assignment
from konverge.runtime.sharding.declare import Sharding
from konverge.runtime.sharding.fence import Fence
from konverge.runtime.sharding.leases import GroupLeases, member_of, read_member
from konverge.runtime.sharding.membership import Event, Membership, Passed, Removed, Seen, ShareChanged, Written
from konverge.runtime.sharding.rendezvous import NAMESPACE_SLOTS, SLOTS, slot_of_key, slot_of_namespace
from konverge.runtime.sharding.sharder import Action, Delete, Publish, Sharder

QUICK_RETRY = 0.25
"""Seconds before a write of our Lease that failed is tried again: at most that many renewals a second and member."""

_log = logging.getLogger("konverge.sharding")


class Replica:
    """One process of a group.

    async with replica.running():
        ...                          # `on_share` is called with every change of our share
        await replica.leave(30)      # our keys move to the others
    """

    def __init__(self, client: Client, sharding: Sharding, on_share: Callable[[ShareChanged], None]) -> None:
        by_key = sharding.by == "key"
        self.sharding = sharding
        self.slot_of = slot_of_key if by_key else slot_of_namespace
        self.leases = GroupLeases(sharding)
        self.membership = Membership(sharding.timing, SLOTS if by_key else NAMESPACE_SLOTS)
        self.sharder = Sharder(sharding.timing.lease_duration)
        self.fence = Fence(self.membership, self.slot_of, self.step)
        self.elector = LeaderElector(
            client, sharding.name, sharding.namespace, identity=self.leases.identity, timing=sharding.timing
        )
        self.on_first: Callable[[bool], None] = lambda first: None
        """Called when this replica becomes the first of the group, and when it is so no longer."""
        self.handovers = 0
        """Hand-overs that we have seen."""
        self._client = client
        self._on_share = on_share
        spec = CacheSpec(resource=LEASES, namespaces=(sharding.namespace,), label_selector=self.leases.selector)
        self._informer = Informer(client.caller, spec)
        self._informer.add_handler(self._changed)
        self._lease: dict[str, Any] | None = None
        self._leaving = False
        self._urgent = asyncio.Event()
        """Our Lease has something new to say."""
        self._renewed = asyncio.Event()
        self._moved = asyncio.Event()
        """Something in the group has changed, for the sharder."""
        self._stepped = asyncio.Event()
        self._problem = Repeated()
        self._shown_at = 0.0
        """When the watch was last seen to show our own Lease as we wrote it."""

    # -------------------------------------------------------------- what others ask

    @property
    def is_first(self) -> bool:
        """Whether this is the replica for what runs once in the group."""
        return self.elector.is_leader and self.membership.valid(clock.elapsed())

    def owns(self, key: Any) -> bool:
        return self.slot_of(key) in self.membership.share

    @property
    def members(self) -> int:
        """Live members, as far as we see."""
        return len(self.sharder.live(clock.elapsed()))

    def not_ready(self) -> str:
        """Why this replica has no part in the work, for the health server; empty when it has."""
        if not self.membership.valid(clock.elapsed()):
            return f"no valid Lease in the group {self.sharding.namespace}/{self.sharding.name}"
        if self._leaving or self.membership.me in self.membership.assignment.everyone:
            return ""
        return f"not a member of the group {self.sharding.namespace}/{self.sharding.name} yet"

    def remark(self) -> str:
        """What holds up a hand-over."""
        waiting = self.sharder.waits_for(clock.elapsed())
        return f"a hand-over waits for {', '.join(sorted(map(str, waiting)))}" if waiting else ""

    # -------------------------------------------------------------- the state machine

    def step(self, event: Event) -> None:
        effects = self.membership.step(event, clock.elapsed())
        for effect in effects:
            if not isinstance(effect, ShareChanged):
                self._urgent.set()
                continue
            if effect.at_once:
                self.fence.give_up()
            self._on_share(effect)
        if effects:
            self._moved.set()
        self._stepped.set()

    def _changed(self, change: Change) -> None:
        lease = None if change.new is None else msgspec.json.decode(change.new.raw)
        if change.key.name == self.leases.assignment:
            self._saw_assignment(lease)
        elif lease is None:
            self.sharder.lost_lease(change.key.name, clock.elapsed() if change.listed else None)
        else:
            self.sharder.saw_lease(read_member(lease), clock.elapsed())
        me = self.membership.me
        if me is not None and change.key.name == me.name and (lease is None or member_of(lease) != me):
            self._lost(f"the Lease {me.name} was deleted")
        self._moved.set()

    def _saw_assignment(self, lease: dict[str, Any] | None) -> None:
        if lease is None:
            self.sharder.saw_assignment(None, "")
            return
        assignment = Assignment.read(lease["metadata"].get("annotations") or {})
        self.sharder.saw_assignment(assignment, lease["metadata"]["resourceVersion"])
        if assignment is not None and assignment.epoch > self.membership.assignment.epoch:
            self.handovers += not assignment.settled
            self.step(Seen(assignment))

    def _lost(self, why: str) -> None:
        if self.membership.me is not None:
            _log.warning("%s: this replica joins the group again", why)
        self._lease = None
        self.step(Removed())
        self._urgent.set()

    # -------------------------------------------------------------- life

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part in the group inside the block; at its end the Lease is released."""
        async with asyncio.TaskGroup() as group:
            names = {"lease": self._renew, "validity": self._expire, "sharder": self._shard}
            watching = group.create_task(self._informer.run(), name="shards: group")
            tasks = [group.create_task(run(), name=f"shards: {name}") for name, run in names.items()]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                watching.cancel()
                await self._release()

    async def leave(self, limit: float) -> None:
        """Give our share to the others: wait until nothing is in work here and they may begin, or the limit is over."""
        self._leaving = True
        self._urgent.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self.wait_until(
                    lambda: (
                        self.membership.me not in self.membership.assignment.everyone and not self.membership.working
                    )
                )

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until our part in the group is like that."""
        while not condition():
            self._stepped.clear()
            await self._stepped.wait()

    async def _renew(self) -> None:
        timing = self.sharding.timing
        while True:
            self._urgent.clear()
            self._check_watch()
            delay = timing.retry_period * clock.rng().uniform(1.0, JITTER)
            if not await self._write_lease():
                await asyncio.sleep(min(QUICK_RETRY, timing.retry_period) * clock.rng().uniform(1.0, JITTER))
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._urgent.wait()

    def _check_watch(self) -> None:
        """Our renewals come back by the watch of the group. If they do not, it has died silently, and we would neither
        see assignments nor acknowledge them."""
        now, shown = clock.elapsed(), self._informer.get(Key(self.leases.namespace, self.leases.own))
        written = 0 if self._lease is None else int(self._lease["metadata"]["resourceVersion"])
        if not written or (shown is not None and shown.version >= written):
            self._shown_at = now
        elif now - self._shown_at > self.sharding.timing.renew_deadline:
            self._shown_at = now
            self._informer.restart_watch(self.leases.namespace)

    async def _write_lease(self, *, released: bool = False) -> bool:
        holder = "" if released else self.leases.identity
        epoch, limit = self.membership.acknowledged, self.sharding.timing.renew_deadline
        body = self.leases.member_body(self._lease, epoch=epoch, leaving=self._leaving, holder=holder)
        write = self._client.create if self._lease is None else self._client.update
        begun = clock.elapsed()
        try:
            lease = await write(body, self.leases.namespace, resource=LEASES, timeout=limit)
        except (Conflict, NotFound, AlreadyExists):
            await self._read_again()
            return False
        except ClientError as error:
            if self._problem.due():
                _log.warning("cannot write the lease %s/%s: %s", self.leases.namespace, self.leases.own, error)
            return False
        except Exception:  # such as a plugin for credentials that fails in its own way: another attempt
            _log.exception("cannot write the lease %s/%s", self.leases.namespace, self.leases.own)
            return False
        self._problem = Repeated()
        self._lease = lease
        if not released:
            self.step(Written(member_of(lease), begun))
            self._renewed.set()
        return True

    async def _read_again(self) -> None:
        """Our Lease is not as we left it: another wrote to it or deleted it, or the answer to our write was lost.

        One that another process holds, such as an earlier one of our name, is removed by the sharder in its time.
        """
        me, space = self.membership.me, self.leases.namespace
        try:
            lease = await self._client.get(LEASES, self.leases.own, space, timeout=self.sharding.timing.renew_deadline)
        except NotFound:
            lease = {}
        except Exception as error:  # as for a write: another attempt follows
            if self._problem.due():
                _log.warning(
                    "cannot read the lease %s/%s: %s", space, self.leases.own, str(error) or type(error).__name__
                )
            return
        ours = (lease.get("spec") or {}).get("holderIdentity") == self.leases.identity
        if me is not None and not (ours and member_of(lease) == me):
            self._lost(f"the Lease {self.leases.own} was deleted or taken")
        self._lease = lease if ours else None

    async def _expire(self) -> None:
        while True:
            remaining = self.membership.deadline() - clock.elapsed()
            if remaining > 0:
                await asyncio.sleep(remaining)
                continue
            if self.membership.share:
                _log.error("the Lease %s was not renewed in time: this replica works on nothing", self.leases.own)
            self.step(Passed())
            self._renewed.clear()
            await self._renewed.wait()

    async def _release(self) -> None:
        if self._lease is None:
            return
        self.step(Removed())  # before the write: from the moment it takes effect, others may have what was ours
        self.fence.give_up()
        if self.membership.working:  # such as a write that may still take effect: others have to wait
            _log.warning("something is still in work: the Lease %s is not released, it runs out", self.leases.own)
            return
        await self._write_lease(released=True)

    # -------------------------------------------------------------- the sharder's work

    async def _shard(self) -> None:
        await self._informer.synced.wait()
        while True:
            async with self.elector.leading() as lost:
                working = asyncio.create_task(self._publish(), name="shards: assignments")
                losing = asyncio.create_task(lost.wait(), name="shards: leadership")
                self.on_first(True)
                try:
                    await asyncio.wait([working, losing], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self.on_first(False)
                    for task in (working, losing):
                        task.cancel()
                    await asyncio.wait([working, losing])
            if working.done() and not working.cancelled() and working.exception() is not None:
                raise working.exception()  # type: ignore[misc]

    async def _publish(self) -> None:
        writer = Fenced(self._client, self.elector)
        while True:
            self._moved.clear()
            actions = self.sharder.plan(clock.elapsed())
            done = [await self._perform(writer, action) for action in actions]
            if actions and all(done):
                continue
            wait = self.sharder.due(clock.elapsed()) - clock.elapsed()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, min(wait, self.sharding.timing.retry_period))):
                    await self._moved.wait()

    async def _perform(self, writer: Client, action: Action) -> bool:
        limit = self.sharding.timing.renew_deadline
        try:
            if isinstance(action, Publish):
                await self._write_assignment(writer, action, limit)
            else:
                member = action.member
                await writer.delete(
                    LEASES, member.name, self.leases.namespace, uid=member.uid, if_version=action.version, timeout=limit
                )
                self.sharder.lost_member(member)
        except (Conflict, NotFound, AlreadyExists) as error:
            # It has changed: the watch brings what is there now, if it is not dead.
            self._informer.restart_watch(self.leases.namespace)
            if isinstance(action, Delete) and isinstance(error, NotFound):
                self.sharder.lost_member(action.member, clock.elapsed())
            return False
        except (ClientError, LeadershipLost) as error:
            if self._problem.due():
                _log.warning("cannot write for the group %s: %s", self.sharding.name, error)
            return False
        except Exception:
            if self._problem.due():
                _log.exception("cannot write for the group %s", self.sharding.name)
            return False
        return True

    async def _write_assignment(self, writer: Client, action: Publish, limit: float) -> None:
        name, space = self.leases.assignment, self.leases.namespace
        if action.version:
            before = {"metadata": {"name": name, "namespace": space, "resourceVersion": action.version}}
            body = self.leases.assignment_body(before, action.assignment)
            lease = await writer.update(body, space, resource=LEASES, timeout=limit)
        else:
            body = self.leases.assignment_body(None, action.assignment)
            lease = await writer.create(body, space, resource=LEASES, timeout=limit)
        self._saw_assignment(lease)
