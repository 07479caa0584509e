"""One run of a manager: what starts and stops, and in which order.

Start: serve health (not ready yet) → connect → check permissions → run start-up hooks → serve webhooks → fill caches →
start the tasks of every replica → win the election → queue what the caches hold → start controllers, each when what it
depends on is ready, and the tasks of the leader. Stop: ask tasks to stop → take no new keys, finish the queued ones,
within a limit → end the tasks → run shut-down hooks → flush events → release the Lease → stop the caches → stop serving
webhooks, then health. Every task belongs to one task group, so none is left behind; tasks of the author's belong to
`Besides`.

Upstream: controller-runtime's pkg/manager/internal.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from konverge.bulk_load import bulk_load
from konverge.cache.quarantine import Quarantined
from konverge.client import Client
from konverge.objects.resource import Resource
from konverge.observe.events import EventRecorder, with_new_order
from konverge.observe.metrics import Counted, RequestNumbers
from konverge.runtime.alongside import ungrouped
from konverge.runtime.caches import SharedCaches
from konverge.runtime.config import ConfigurationError, check_settings
from konverge.runtime.context import Recorder
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.dependencies import check_names, wait_for
from konverge.runtime.elector import Fenced, LeaderElector, LeadershipLost
from konverge.runtime.endpoints import asks_about_callers, serving_endpoints
from konverge.runtime.engine import Engine, reference
from konverge.runtime.introduction import introduce, program_source, reach
from konverge.runtime.problems import log_problems, noticing, unanswered
from konverge.runtime.rbac import permissions, require_permissions, required
from konverge.runtime.result import Request
from konverge.runtime.tasks.besides import Besides
from konverge.runtime.tasks.hooks import ShutdownHooks, run_startup_hooks
from konverge.runtime.writes import Tracked

if TYPE_CHECKING:
    from konverge.runtime.clusters.fleet import Fleet
    from konverge.runtime.manager import Manager
    from konverge.runtime.sharding.shares import Shares
    from konverge.runtime.story.spans import Spans

LARGE_CACHE = 5_000
"""Cached objects from which on a full garbage collection delays reconciles noticeably (0.14 s for 4,000 pods as
dicts)."""

_log = logging.getLogger("konverge.manager")


class Lifecycle:
    """One run of a manager, from its start to its end."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self._readiness = manager.readiness

    async def serve(self, stop: asyncio.Event, ready: asyncio.Future[None] | None = None) -> None:
        """Run until `stop` is set; raises what ended it otherwise."""
        manager = self.manager
        for controller in manager.controllers:
            check_names(controller.name, list(controller.depends_on), {c.name for c in manager.controllers})
        async with AsyncExitStack() as stack:
            client = self.manager.client
            if client is None:
                client = await stack.enter_async_context(Client.connect(user_agent=self.manager.name))
            self.manager.numbers.requests = RequestNumbers()
            client = Counted(client, self.manager.numbers.requests)
            await stack.enter_async_context(serving_endpoints(manager, client))
            if not await _unless_stopped(stop, self._prepare(client)):
                return
            if not await _unless_stopped(stop, run_startup_hooks(self.manager.startup_hooks, client)):
                return
            hooks = ShutdownHooks(self.manager.shutdown_hooks, client, self.manager.shutdown_timeout)
            stack.push_async_callback(hooks.run)
            if self.manager.webhooks is not None:
                from konverge.runtime.webhooks.serving import serving_webhooks  # loaded by those who have some

                await stack.enter_async_context(serving_webhooks(self.manager, client, stop))
            try:
                await ungrouped(self._serve_controllers(client, hooks, stop, ready))
            finally:
                for engine in self.manager.engines.values():
                    engine.stop()

    async def _serve_controllers(
        self, client: Client, hooks: ShutdownHooks, stop: asyncio.Event, ready: asyncio.Future[None] | None
    ) -> None:
        elector, shares = self._elector(client), self._shares(client)
        writer = client if elector is None else Fenced(client, elector)
        writer = writer if shares is None else shares.fenced(client)
        tracked = Tracked(writer)
        recorder = (
            with_new_order(self.manager.recorder) if self.manager.recorder else EventRecorder(writer, self.manager.name)
        )
        reader = tracked if shares is None else shares.selecting(tracked)
        self.manager.caches = SharedCaches(reader, self.manager.name, self.manager.config.cache)
        self.manager.fleet = self._fleet(client, elector, recorder)
        for controller in self._home_controllers:
            self._add_engine(controller, tracked, recorder)
        for informer in self.manager.caches.informers.values():
            informer.quarantine.listeners.append(partial(_report, recorder, informer.spec.resource))
        log_problems(self.manager.caches, client.server, self.manager.controllers, self._command("crd"))
        besides = Besides(self.manager, client, tracked, recorder, hooks)
        if shares is not None:
            besides.leading = Tracked(shares.fenced_for_leader(client))
            await shares.prepare(client)
        try:
            await self._run_controllers(elector, recorder, besides, stop, ready)
        finally:
            await besides.end()

    async def _run_controllers(
        self,
        elector: LeaderElector | None,
        recorder: Recorder,
        besides: Besides,
        stop: asyncio.Event,
        ready: asyncio.Future[None] | None,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            recording = (
                [group.create_task(recorder.run(), name="events")] if isinstance(recorder, EventRecorder) else []
            )
            watching = [
                group.create_task(i.run(), name=f"cache {i.spec}") for i in self.manager.caches.informers.values()
            ]
            loading = bulk_load(lambda: self.manager.dedicated or self.manager.caches.size >= LARGE_CACHE)
            with loading, noticing(partial(unanswered, self.manager.caches)):
                proceed = await _unless_stopped(
                    stop, self.manager.caches.wait_synced(self.manager.config.cache.sync_timeout)
                )
            fleet = [] if self.manager.fleet is None else [group.create_task(self.manager.fleet.run(), name="clusters")]
            if proceed:
                besides.start(leader_only=False)
            if proceed and elector is not None:
                proceed = await _unless_stopped(stop, elector.acquire())
            if proceed and self.manager.shares is not None:
                await self._share(group, self.manager.shares, besides, stop, ready, recording)
            elif proceed:
                await self._lead(group, elector, besides, stop, ready, recording)
            self._readiness.stopping = True
            for tasks in (fleet, watching, recording):
                await _cancel(tasks)

    async def _lead(
        self,
        group: asyncio.TaskGroup,
        elector: LeaderElector | None,
        besides: Besides,
        stop: asyncio.Event,
        ready: asyncio.Future[None] | None,
        recording: list[asyncio.Task[None]],
    ) -> None:
        """Run the controllers until `stop` is set or leadership is lost."""
        async with AsyncExitStack() as stack:
            lost = asyncio.Event() if elector is None else await stack.enter_async_context(elector.holding())
            working = [
                group.create_task(self._work(e), name=f"controller {n}") for n, e in self.manager.engines.items()
            ]
            if self.manager.fleet is not None:
                self.manager.fleet.lead()
            besides.start(leader_only=True)
            if ready is not None and not ready.done():
                ready.set_result(None)
            if not await _unless_stopped(stop, lost.wait()):
                self._readiness.stopping = True
                besides.ask()
                draining = [self._drain(working)]
                if self.manager.fleet is not None:
                    draining.append(self.manager.fleet.drain(self.manager.shutdown_timeout))
                await asyncio.gather(*draining)
                await besides.end()
                await _cancel(
                    recording
                )  # while the Lease is ours: after that nothing may be written, not even an event
                return
            besides.cancel()
        raise LeadershipLost("leadership was lost: this process stops, another one leads")

    async def _share(
        self,
        group: asyncio.TaskGroup,
        shares: Shares,
        besides: Besides,
        stop: asyncio.Event,
        ready: asyncio.Future[None] | None,
        recording: list[asyncio.Task[None]],
    ) -> None:
        """Run the controllers on our share until `stop` is set; then give it to the other replicas."""
        shares.replica.on_first = besides.lead
        async with shares.running(self.manager.caches.informers.values()):
            working = [
                group.create_task(self._work(e), name=f"controller {n}") for n, e in self.manager.engines.items()
            ]
            if ready is not None and not ready.done():
                ready.set_result(None)
            await stop.wait()
            self._readiness.stopping = True
            besides.ask()
            await shares.replica.leave(self.manager.shutdown_timeout)
            await self._drain(working)
            await besides.end()
            await _cancel(recording)  # while our Lease is valid: after that nothing may be written, not even an event

    async def _prepare(self, client: Client) -> None:
        await reach(client, self.manager.config.cache.sync_timeout)
        together = self.manager.leader_election or self.manager.sharding
        lease = f"Lease {together.namespace}/{together.name}" if together else ""
        introduce(self.manager.controllers, self.manager.settings, lease)
        if self.manager.health_address is None:
            _log.info("no health server: no health_address is given")
        if self.manager.checks_permissions:
            together = self.manager.leader_election or self.manager.sharding
            needed = permissions(
                self._home_controllers,
                lease_namespace=together.namespace if together else "",
                sharded=self.manager.sharding is not None,
                reviews=asks_about_callers(self.manager),
            )
            needed += getattr(self.manager.cluster_provider, "permissions", list)()
            webhooks = self.manager.webhooks
            if webhooks is not None and webhooks.place is not None:
                needed += webhooks.place.permissions(webhooks)
            await require_permissions(client, filter(required, needed), self._command("rbac"))

    @property
    def _home_controllers(self) -> list[Controller[Any]]:
        """As they run at home. Without other clusters, nothing leads there from others."""
        here = [controller for controller in self.manager.controllers if controller.clusters != "others"]
        if all(watch.clusters == "same" for controller in here for watch in controller.watched):
            return here
        from konverge.runtime.clusters.feeds import within_one_cluster

        return [within_one_cluster(controller) for controller in here]

    def _fleet(self, client: Client, elector: LeaderElector | None, recorder: Recorder) -> Fleet | None:
        """The other clusters; loaded by managers that have some."""
        provider = self.manager.cluster_provider
        if provider is None:
            for controller in self.manager.controllers:
                if controller.clusters == "others":
                    raise ValueError(f"{controller.name} runs in other clusters: say which with Manager(clusters=…)")
            return None
        from konverge.runtime.clusters.fleet import Fleet

        fleet = Fleet(self.manager, provider, client, elector, self._readiness.started)
        fleet.recorder = recorder
        return fleet

    def _command(self, verb: str) -> str:
        """What a user types to print the definitions (`crd`) or roles (`rbac`) of this program; empty if unknown."""
        if self.manager.program:
            return f"{self.manager.program} {verb}"
        source = self.manager.source or program_source(self.manager.controllers)
        return f"konverge {verb} {source}" if source else ""

    def _elector(self, client: Client) -> LeaderElector | None:
        election = self.manager.leader_election
        if election is None:
            return None
        elector = LeaderElector(
            client, election.name, election.namespace, identity=election.identity, timing=election.timing
        )
        self.manager.numbers.leaders[election.name] = lambda: elector.is_leader
        return elector

    def _shares(self, client: Client) -> Shares | None:
        if self.manager.sharding is None:
            return None
        from konverge.runtime.sharding.shares import Shares  # loaded by those who share their work

        shares = self.manager.shares = Shares(client, self.manager.sharding, self.manager.engines)
        shares.report(self.manager.numbers, self.manager.health)
        return shares

    def _add_engine(self, controller: Controller[Any], client: Client, recorder: Recorder) -> None:
        if controller.component and isinstance(recorder, EventRecorder):
            recorder = recorder.named(controller.component)
        together = self.manager.leader_election or self.manager.sharding
        fleet = self.manager.fleet
        make: Callable[..., Engine[Any]] = Engine
        if fleet is not None:
            from konverge.runtime.clusters.engine import ClusterEngine

            make = partial(ClusterEngine, cluster="", clusters=fleet.others_of(controller.name))
        if controller.key is not Request:
            from konverge.runtime.keyed import KeyedEngine

            if fleet is not None:
                raise ValueError(f"{controller.name} has key=…, and requests of several clusters are those of objects")
            make = KeyedEngine
        spans = self._spans
        engine = make(
            controller,
            client=client if spans is None else spans.client(client),
            caches=self.manager.caches.declare(controller),
            recorder=recorder,
            manager=controller.field_manager or self.manager.name,
            settings=self._settings_of(controller),
            observers=self.manager.on_reconciled,
            gated=2 * together.timing.lease_duration if together else 0.0,
            story=self.manager.story,
        )
        if spans is not None:
            engine.wrap(partial(spans.around, controller))
        if controller.name in self.manager.paused:
            engine.queue.pause()
        self.manager.engines[controller.name] = engine
        self.manager.numbers.controllers.append(engine.numbers)
        if controller.metrics is not None:
            self.manager.numbers.more.append(controller.metrics)
        self.manager.numbers.informers = list(self.manager.caches.informers.values())

    @cached_property
    def _spans(self) -> Spans | None:
        tracing = self.manager.tracing
        if not tracing:
            return None
        try:
            from konverge.runtime.story.spans import Spans
        except ImportError as error:
            raise ConfigurationError(f"tracing needs OpenTelemetry: pip install 'konverge[otel]' ({error})") from error
        return Spans(None if tracing is True else tracing)

    def _settings_of(self, controller: Controller[Any]) -> Settings:
        settings = (controller.settings or Settings()).over(self.manager.settings)
        check_settings(settings)
        return settings

    async def _work(self, engine: Engine[Any]) -> None:
        name = engine.controller.name
        for dependency in engine.controller.depends_on:
            self._readiness.waiting[name] = dependency
            await wait_for(dependency, self._readiness.started.__contains__)
        self._readiness.waiting.pop(name, None)
        self._readiness.started.add(name)
        if self.manager.shares is not None:
            await self.manager.shares.start(engine)
        elif engine.gate is not None:
            engine.gate.set_gate(lambda _: True)
            await engine.take_over()
        await engine.run()

    async def _drain(self, working: list[asyncio.Task[None]]) -> None:
        """Take no new keys and finish the queued ones; cancel what takes too long. Upstream: engageStopProcedure."""
        for engine in self.manager.engines.values():
            engine.queue.shut_down()
        for task, name in zip(working, self.manager.engines, strict=True):
            if name not in self._readiness.started:
                task.cancel()  # the controller still waits for a dependency: it has nothing to finish
        _, late = await asyncio.wait(working, timeout=self.manager.shutdown_timeout) if working else (set(), set())
        for task in late:
            _log.warning(
                "%s did not finish within %g s and is cancelled", task.get_name(), self.manager.shutdown_timeout
            )
        await _cancel(list(late))


def _report(recorder: Recorder, resource: Resource, entry: Quarantined) -> None:
    about = reference(resource, entry.key, entry.uid, entry.version)
    recorder.event("ObjectQuarantined", f"{entry.stage}: {entry.error}", about=about, type="Warning")


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Await some work and return True; when `stop` is set first, cancel it and return False."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        await _cancel([working, stopping])


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
