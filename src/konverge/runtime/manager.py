"""The manager: starts declared controllers in order, and stops them in order.

Start: serve health (not ready yet) → connect → check permissions → fill caches → win the election → start controllers,
each when what it depends on is ready. Stop: take no new keys → finish the queued ones, within a limit → stop the caches
→ flush events → release the Lease → stop serving health. Every task belongs to one task group, so none is left behind.

Upstream: controller-runtime's pkg/manager/internal.go.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Self

from konverge.cache.quarantine import Quarantined
from konverge.client import Client
from konverge.objects.resource import Resource
from konverge.observe.events import EventRecorder, with_new_order
from konverge.observe.health import Health
from konverge.observe.metrics import Counted, Numbers, RequestNumbers
from konverge.runtime.alongside import alongside, ungrouped
from konverge.runtime.caches import SharedCaches, bulk_load
from konverge.runtime.config import Configuration, check_settings, load_configuration
from konverge.runtime.context import Recorder
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.dependencies import check_names, wait_for
from konverge.runtime.election import Timing
from konverge.runtime.elector import Fenced, LeaderElector, LeadershipLost
from konverge.runtime.engine import Engine, reference
from konverge.runtime.importing import refuse_while_loading
from konverge.runtime.introduction import introduce, program_source, reach
from konverge.runtime.problems import log_problems, noticing, unanswered
from konverge.runtime.rbac import MissingPermissions as MissingPermissions
from konverge.runtime.rbac import permissions, require_permissions
from konverge.runtime.reconciled import Observer
from konverge.runtime.writes import Tracked
from konverge.wire.server import Server

LARGE_CACHE = 5_000
"""Cached objects from which on a full garbage collection delays reconciles noticeably (0.14 s for 4,000 pods as
dicts)."""

_log = logging.getLogger("konverge.manager")


class Unchanged(Enum):
    """The type of an option that is left as it is, where None has a meaning of its own."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Only one process of several reconciles at a time; the others stand by with warm caches."""

    name: str
    namespace: str = "default"
    identity: str = ""
    timing: Timing = field(default_factory=Timing)


class Manager:
    """Runs controllers.

    manager = Manager()
    manager.add(Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service]))
    manager.run()

    `run` is a whole program: signals, logs, exit status. In tests, `async with manager.running():`.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        name: str = "konverge",
        config: Configuration | None = None,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        leader_election: LeaderElection | None = None,
        health_address: tuple[str, int] | None = None,
        check_permissions: bool = True,
        shutdown_timeout: float = 30.0,
        paused: Collection[str] = (),
    ) -> None:
        """`name` is the field manager of everything that is written. Without a client, one is made as kubectl would.

        What `config` and `settings` leave out is read from the environment and the file that `KONVERGE_CONFIG` names
        (see `konverge.runtime.config`); a configuration from `load_configuration` is taken as it is.

        `paused` names controllers that begin with their queue paused: their queues receive all keys, and no reconcile
        runs until `manager.engines[name].queue.resume()`.
        """
        self.name = name
        self._given_config = config or Configuration()
        self._given_settings = settings or Settings()
        self.numbers = Numbers()
        self.health = Health(self.numbers)
        self.engines: dict[str, Engine[Any]] = {}
        self.on_reconciled: list[Observer] = []
        """Called with every reconcile that has ended; must not fail."""
        self.caches: SharedCaches
        self.health_port = 0
        """The port of the health server, once it listens."""
        self.dedicated = False
        """Whether this process runs nothing else: then what its caches hold is always frozen (see `bulk_load`)."""
        self.source = ""
        """What `konverge crd` takes to find its kinds, for messages; by default the program that runs."""
        self._client = client
        self._recorder = recorder
        self._election = leader_election
        self._health_address = health_address
        self._check_permissions = check_permissions
        self._shutdown_timeout = shutdown_timeout
        self._paused = frozenset(paused)
        self._controllers: list[Controller[Any]] = []
        self._started: set[str] = set()
        self._stopping = False
        self._waiting: dict[str, str] = {}

    @functools.cached_property
    def config(self) -> Configuration:
        """What was given in code, else in the environment, else in a file. Raises ConfigurationError."""
        given = self._given_config
        return given if given.loaded else load_configuration(code=given)

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings of controllers that have none of their own."""
        return self._given_settings.over(self.config.controller)

    def add(self, controller: Controller[Any]) -> Self:
        """Declare a controller. Before the start only."""
        if any(other.name == controller.name for other in self._controllers):
            raise ValueError(f"there is already a controller {controller.name!r}; give this one a name=…")
        self._controllers.append(controller)
        return self

    @property
    def controllers(self) -> list[Controller[Any]]:
        return list(self._controllers)

    def bound_to(
        self,
        client: Client,
        *,
        controllers: Sequence[Controller[Any]] | None = None,
        config: Configuration | None = None,
        leader_election: LeaderElection | Unchanged | None = UNCHANGED,
        health_address: tuple[str, int] | Unchanged | None = UNCHANGED,
        paused: Collection[str] | None = None,
    ) -> Manager:
        """A new manager with the same declarations on this client; what is not given is as in this one.

        So a manager that a module declares once runs in a test's cluster, by `konverge run` and in `konverge up`. None
        switches off the leader election, or the health server.

        async with manager.bound_to(cluster.client).running():
            ...
        """
        bound = Manager(
            client,
            name=self.name,
            config=config or self._given_config,
            settings=self._given_settings,
            recorder=self._recorder,
            leader_election=self._election if isinstance(leader_election, Unchanged) else leader_election,
            health_address=self._health_address if isinstance(health_address, Unchanged) else health_address,
            check_permissions=self._check_permissions,
            shutdown_timeout=self._shutdown_timeout,
            paused=self._paused if paused is None else paused,
        )
        bound._controllers = list(self._controllers if controllers is None else controllers)
        return bound

    @property
    def declared_config(self) -> Configuration:
        """What was given in code alone: `load_configuration(file, code=manager.declared_config)` adds the rest."""
        return self._given_config

    @property
    def leader_election(self) -> LeaderElection | None:
        return self._election

    @property
    def health_address(self) -> tuple[str, int] | None:
        return self._health_address

    def movable_controllers(self) -> list[Controller[Any]]:
        """Its controllers, to run beside those of others in one manager: they keep its name and its settings."""
        given = self._given_settings.over(self._given_config.controller)
        return [
            replace(
                controller,
                field_manager=controller.field_manager or self.name,
                component=controller.component or self.name,
                settings=(controller.settings or Settings()).over(given),
            )
            for controller in self._controllers
        ]

    def run(self) -> None:
        """Run until SIGTERM or SIGINT. Ends the process with a message and status 1 when something fails.

        Logs go to standard error, as text on a terminal and as JSON elsewhere (KONVERGE_LOG_LEVEL,
        KONVERGE_LOG_FORMAT), unless the program has configured the root logger itself.
        """
        from konverge.runtime.program import run_program  # it needs the Manager

        refuse_while_loading(self.name)
        run_program(self)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Inside the block caches are synced and controllers run; after it they have stopped in order.

        When the manager cannot go on, the block is cancelled, and what ended the manager is raised.
        """
        stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self.serve(stop, ready), name=f"manager {self.name}")
        async with alongside(serving, stop.set):
            await ready
            yield self

    # -------------------------------------------------------------- start and stop

    async def serve(self, stop: asyncio.Event, ready: asyncio.Future[None] | None = None) -> None:
        """Run until `stop` is set; raises what ended it otherwise. Upstream: controllerManager.Start."""
        refuse_while_loading(self.name)
        for controller in self._controllers:
            check_names(controller.name, list(controller.depends_on), {c.name for c in self._controllers})
        self._declare_health()
        async with AsyncExitStack() as stack:
            client = self._client
            if client is None:
                client = await stack.enter_async_context(Client.connect(user_agent=self.name))
            self.numbers.requests = RequestNumbers()
            client = Counted(client, self.numbers.requests)
            await self._serve_health(stack)
            if not await _unless_stopped(stop, self._prepare(client)):
                return
            try:
                await ungrouped(self._serve_controllers(client, stop, ready))
            finally:
                for engine in self.engines.values():
                    engine.stop()

    async def _serve_controllers(self, client: Client, stop: asyncio.Event, ready: asyncio.Future[None] | None) -> None:
        elector = self._elector(client)
        writer = client if elector is None else Fenced(client, elector)
        tracked = Tracked(writer)
        recorder = with_new_order(self._recorder) if self._recorder else EventRecorder(writer, self.name)
        self.caches = SharedCaches(tracked, self.name, self.config.cache)
        for controller in self._controllers:
            self._add_engine(controller, tracked, recorder)
        for informer in self.caches.informers.values():
            informer.quarantine.listeners.append(partial(_report, recorder, informer.spec.resource))
        log_problems(self.caches, client.server, self._controllers, self._source)
        async with asyncio.TaskGroup() as group:
            recording = (
                [group.create_task(recorder.run(), name="events")] if isinstance(recorder, EventRecorder) else []
            )
            watching = [group.create_task(i.run(), name=f"cache {i.spec}") for i in self.caches.informers.values()]
            loading = bulk_load(lambda: self.dedicated or self.caches.size >= LARGE_CACHE)
            with loading, noticing(partial(unanswered, self.caches)):
                proceed = await _unless_stopped(stop, self.caches.wait_synced(self.config.cache.sync_timeout))
            if proceed and elector is not None:
                proceed = await _unless_stopped(stop, elector.acquire())
            if proceed:
                await self._lead(group, elector, stop, ready, recording)
            self._stopping = True
            for tasks in (watching, recording):
                await _cancel(tasks)

    async def _lead(
        self,
        group: asyncio.TaskGroup,
        elector: LeaderElector | None,
        stop: asyncio.Event,
        ready: asyncio.Future[None] | None,
        recording: list[asyncio.Task[None]],
    ) -> None:
        """Run the controllers until `stop` is set or leadership is lost."""
        async with AsyncExitStack() as stack:
            lost = asyncio.Event() if elector is None else await stack.enter_async_context(elector.holding())
            working = [group.create_task(self._work(e), name=f"controller {n}") for n, e in self.engines.items()]
            if ready is not None and not ready.done():
                ready.set_result(None)
            if not await _unless_stopped(stop, lost.wait()):
                self._stopping = True
                await self._drain(working)
                await _cancel(
                    recording
                )  # while the Lease is ours: after that nothing may be written, not even an event
                return
        raise LeadershipLost("leadership was lost: this process stops, another one leads")

    async def _prepare(self, client: Client) -> None:
        await reach(client, self.config.cache.sync_timeout)
        lease = self._election and f"Lease {self._election.namespace}/{self._election.name}"
        introduce(self._controllers, self.settings, lease or "")
        if self._health_address is None:
            _log.info("no health server: no health_address is given")
        if self._check_permissions:
            space = self._election.namespace if self._election else ""
            await require_permissions(client, permissions(self._controllers, lease_namespace=space), self._source)

    @property
    def _source(self) -> str:
        return self.source or program_source(self._controllers)

    def _elector(self, client: Client) -> LeaderElector | None:
        election = self._election
        if election is None:
            return None
        elector = LeaderElector(
            client, election.name, election.namespace, identity=election.identity, timing=election.timing
        )
        self.numbers.leaders[election.name] = lambda: elector.is_leader
        return elector

    def _add_engine(self, controller: Controller[Any], client: Client, recorder: Recorder) -> None:
        if controller.component and isinstance(recorder, EventRecorder):
            recorder = recorder.named(controller.component)
        engine = Engine(
            controller,
            client=client,
            caches=self.caches.declare(controller),
            recorder=recorder,
            manager=controller.field_manager or self.name,
            settings=self._settings_of(controller),
            observers=self.on_reconciled,
        )
        if controller.name in self._paused:
            engine.queue.pause()
        self.engines[controller.name] = engine
        self.numbers.controllers.append(engine.numbers)
        if controller.metrics is not None:
            self.numbers.more.append(controller.metrics)
        self.numbers.informers = list(self.caches.informers.values())

    def _settings_of(self, controller: Controller[Any]) -> Settings:
        settings = (controller.settings or Settings()).over(self.settings)
        check_settings(settings)
        return settings

    async def _work(self, engine: Engine[Any]) -> None:
        name = engine.controller.name
        for dependency in engine.controller.depends_on:
            self._waiting[name] = dependency
            await wait_for(dependency, self._started.__contains__)
        self._waiting.pop(name, None)
        self._started.add(name)
        await engine.run()

    async def _drain(self, working: list[asyncio.Task[None]]) -> None:
        """Take no new keys and finish the queued ones; cancel what takes too long. Upstream: engageStopProcedure."""
        for engine in self.engines.values():
            engine.queue.shut_down()
        for task, name in zip(working, self.engines, strict=True):
            if name not in self._started:
                task.cancel()  # the controller still waits for a dependency: it has nothing to finish
        _, late = await asyncio.wait(working, timeout=self._shutdown_timeout) if working else (set(), set())
        for task in late:
            _log.warning("%s did not finish within %g s and is cancelled", task.get_name(), self._shutdown_timeout)
        await _cancel(list(late))

    # -------------------------------------------------------------- health

    async def _serve_health(self, stack: AsyncExitStack) -> None:
        if self._health_address is None:
            return
        server = await stack.enter_async_context(Server(self.health.handle))
        await server.start(*self._health_address)
        self.health_port = server.port
        _log.info("health is served at %s:%d", *server.addresses[0])

    def _declare_health(self) -> None:
        self.health.live["shutdown"] = lambda: "stopping" if self._stopping else ""
        self.health.ready["caches"] = self._unsynced
        self.health.ready["dependencies"] = self._unmet
        self.health.remarks["quarantine"] = self._quarantined
        self.health.remarks["sources"] = self._sources_down

    def _unsynced(self) -> str:
        caches = getattr(self, "caches", None)
        return "not synced" if caches is None or caches.unsynced else ""

    def _quarantined(self) -> str:
        caches = getattr(self, "caches", None)
        informers = () if caches is None else caches.informers.values()
        return "; ".join(f"{informer.spec} {entry}" for informer in informers for entry in informer.quarantine)

    def _sources_down(self) -> str:
        numbers = self.numbers.controllers
        return "; ".join(f"{c.name} {source}: {why}" for c in numbers for source, why in c.sources_down.items())

    def _unmet(self) -> str:
        return "; ".join(f"{name} waits for {dependency}" for name, dependency in self._waiting.items())


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
