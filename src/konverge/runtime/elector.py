"""The elector: keeps a Lease, and says at every moment whether this process may act.

`Fenced` is the other half of "at most one leader acts": it wraps the client of the controllers and asks the election
before every write, and again directly before each sending. A process that was suspended wakes up in the middle of its
reconciles and of the client's waits; the first write of any of them finds that the time is over and fails, before the
elector itself has had a chance to run.

A candidate that stands by watches the Lease (`konverge.runtime.lease_watch`): it takes a released one at once, and
reads it only when its time is over. Where it may not watch, it reads the Lease every `retry_period`, as client-go does.

Upstream: LeaderElector (client-go's tools/leaderelection/leaderelection.go); the fence is ours.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from konverge import clock
from konverge.client import AlreadyExists, Client, ClientError, Conflict, NotFound
from konverge.client.call import Call, Caller
from konverge.objects.times import format_micro_time
from konverge.observe.repeated import Repeated
from konverge.runtime.election import Election, LeaseRecord, Timing
from konverge.runtime.lease_watch import LEASES as LEASES
from konverge.runtime.lease_watch import LeaseWatch
from konverge.runtime.result import TransientError
from konverge.wire.message import Response, Stream

JITTER = 1.2
"""The upper bound of a random factor on the retry period. Upstream: JitterFactor."""

_log = logging.getLogger("konverge.election")


class LeadershipLost(TransientError):
    """This process is not the leader (any more), so it must not write."""


class LeaderElector:
    """A candidate for one Lease.

    async with elector.leading() as lost:
        ...                # we lead; `lost` is set the moment we no longer do
    """

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        *,
        identity: str = "",
        timing: Timing | None = None,
        labels: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.election = Election(identity or default_identity(), timing or Timing())
        self._client = client
        self._labels = labels or {}
        self._lease: dict[str, Any] | None = None
        self._reported = ""
        self._problem = Repeated()

    @property
    def is_leader(self) -> bool:
        return self.election.leads(clock.elapsed())

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[asyncio.Event]:
        """Wait until we lead; inside the block the Lease is renewed, at its end released."""
        await self.acquire()
        async with self.holding() as lost:
            yield lost

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[asyncio.Event]:
        """For a holder of the Lease: inside the block it is renewed, at its end released."""
        lost = asyncio.Event()
        renewing = asyncio.create_task(self._renew(lost), name=f"renew lease {self.namespace}/{self.name}")
        try:
            yield lost
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            await self._release()

    async def acquire(self) -> None:
        """Wait until we lead."""
        _log.info("%s: waiting to lead %s/%s", self.election.identity, self.namespace, self.name)
        async with LeaseWatch(self._client, self.name, self.namespace, self._seen, self._jittered) as watch:
            while not await self._try():
                await watch.changed(self._patience(watching=watch.works))
        _log.info("%s: leads %s/%s", self.election.identity, self.namespace, self.name)

    async def _renew(self, lost: asyncio.Event) -> None:
        try:
            while self.is_leader:
                try:
                    async with asyncio.timeout(self.election.deadline() - clock.elapsed()):
                        await self._pause()
                        await self._try()
                except TimeoutError:
                    break
        finally:
            if not self.is_leader:
                _log.error("%s: leadership of %s/%s lost", self.election.identity, self.namespace, self.name)
            lost.set()

    async def _pause(self) -> None:
        await asyncio.sleep(self._jittered())

    def _jittered(self) -> float:
        return self.election.timing.retry_period * clock.rng().uniform(1.0, JITTER)

    # -------------------------------------------------------------- standing by

    def _seen(self, lease: dict[str, Any] | None) -> bool:
        """The watch shows the Lease; None when it was deleted. Returns whether it may be free."""
        if lease is not None:
            self.election.observe(LeaseRecord.read(lease.get("spec") or {}), clock.elapsed())
            self._report()
        return lease is None or self.election.may_take(clock.elapsed())

    def _patience(self, *, watching: bool) -> float:
        """Seconds until the next attempt, unless the watch shows a free Lease before."""
        expires_in = self.election.expires_at() - clock.elapsed() if watching else 0.0
        return max(expires_in, 0.0) + self._jittered()

    # -------------------------------------------------------------- one attempt

    async def _try(self) -> bool:
        """Take or renew the Lease if that is allowed; a failure means another attempt. Upstream: tryAcquireOrRenew."""
        try:
            if self._lease is None or not self.is_leader:
                await self._observe()
            if not self.election.may_take(clock.elapsed()):
                self._report()
                return False
            await self._write(self.election.next_record(_wall()))
            self._problem = Repeated()
        except (Conflict, AlreadyExists, NotFound):
            self._lease = None  # another candidate was faster; read it again
            return False
        except ClientError as error:
            if self._problem.due():
                _log.warning("cannot reach the lease %s/%s: %s; trying again", self.namespace, self.name, error)
            return False
        except Exception:  # such as a plugin for credentials that fails in its own way: another attempt
            _log.exception("cannot use the lease %s/%s", self.namespace, self.name)
            self._lease = None
            return False
        return self.is_leader

    async def _observe(self) -> None:
        try:
            self._lease = await self._client.get(LEASES, self.name, self.namespace, timeout=self._limit())
        except NotFound:
            self._lease = None
            self.election.observed = None
            return
        self.election.observe(LeaseRecord.read(self._lease.get("spec") or {}), clock.elapsed())

    async def _write(self, record: LeaseRecord) -> None:
        begun = clock.elapsed()
        await self._put(record)
        self.election.written(record, begun, clock.elapsed())

    async def _put(self, record: LeaseRecord) -> None:
        if self._lease is None:
            metadata = {"name": self.name, "namespace": self.namespace, "labels": self._labels}
            body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": record.spec()}
            self._lease = await self._client.create(body, self.namespace, resource=LEASES, timeout=self._limit())
        else:
            # The whole Lease as it was read, with its resourceVersion: other fields stay, and a race is a Conflict.
            body = {**self._lease, "spec": {**(self._lease.get("spec") or {}), **record.spec()}}
            self._lease = await self._client.update(body, self.namespace, resource=LEASES, timeout=self._limit())

    async def _release(self) -> None:
        record = self.election.released_record(_wall())
        if record is None or self._lease is None or not self.is_leader:
            return
        # Stop leading before the write: from the moment it takes effect another may lead, however late its answer
        # comes.
        self.election.released()
        try:
            await self._put(record)
        except ClientError as error:
            _log.info("the lease %s/%s was not released: %s", self.namespace, self.name, error)
        self._lease = None

    def _limit(self) -> float:
        return self.election.timing.renew_deadline

    def _report(self) -> None:
        holder = self.election.observed.holder if self.election.observed else ""
        if holder != self._reported:
            self._reported = holder
            _log.info("%s/%s is led by %s", self.namespace, self.name, holder)


class Fenced(Client):
    """A client that writes only while we lead."""

    def __init__(self, inner: Client, elector: LeaderElector) -> None:
        self._use_caller(FencedCalls(inner.caller, elector), inner.mapper)


class FencedCalls:
    """A `Caller` that asks before every write whether we still lead."""

    def __init__(self, inner: Caller, elector: LeaderElector) -> None:
        self._inner = inner
        self._elector = elector

    @property
    def near(self) -> bool:
        return self._inner.near

    async def call(self, call: Call) -> Response:
        if call.writes:
            self._check()
            call.ask_before_send(self._check)
        return await self._inner.call(call)

    def _check(self) -> None:
        if not self._elector.is_leader:
            raise LeadershipLost(
                f"not the leader of {self._elector.namespace}/{self._elector.name}: nothing is written"
            )

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)


def default_identity() -> str:
    """Host and a random part, as client-go makes it: one process, one identity."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{clock.new_uid()}"


def _wall() -> str:
    return format_micro_time(clock.utc_now())
