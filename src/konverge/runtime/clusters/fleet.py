"""The clusters that there are now. Each has a task that keeps it: connects it, and connects it again when it failed.

The provider says which clusters there are; the difference to what runs is acted upon here, each cluster for itself. A
cluster whose description became unusable keeps the connection that it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from konverge.client import Client
from konverge.observe.events import EventRecorder, with_new_order
from konverge.observe.health import Health
from konverge.observe.metrics import Numbers
from konverge.runtime.base_context import Recorder
from konverge.runtime.clusters.access import ClusterAccess, OtherClusters
from konverge.runtime.clusters.feeds import across_clusters, check_feeds, within_one_cluster
from konverge.runtime.clusters.member import Member
from konverge.runtime.clusters.providers import ClusterProvider, Connection, Known, Unusable
from konverge.runtime.config import Configuration
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.dependencies import wait_for
from konverge.runtime.elector import Fenced, LeaderElector
from konverge.runtime.engine import LOW, Engine
from konverge.runtime.reasons import External
from konverge.runtime.reconciled import Observer
from konverge.runtime.story.story import Story
from konverge.workqueue import Backoff

FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
"""Seconds before a cluster that failed, or a provider, is tried again. A server that is away is no failure: caches try
again by themselves."""

_log = logging.getLogger("konverge.clusters")


class Home(Protocol):
    """What the clusters need of the manager."""

    name: str
    numbers: Numbers
    health: Health
    story: Story
    engines: dict[str, Engine[Any]]
    on_reconciled: list[Observer]

    @property
    def config(self) -> Configuration: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def controllers(self) -> list[Controller[Any]]: ...
    @property
    def recorder(self) -> Recorder | None: ...


@dataclass(slots=True, eq=False)
class _Slot:
    """One cluster by name."""

    fingerprint: Any
    task: asyncio.Task[None]
    member: Member | None = None
    problem: str = ""


class Fleet:
    """All clusters of a manager besides the home cluster."""

    def __init__(
        self,
        manager: Home,
        provider: ClusterProvider,
        home: Client,
        elector: LeaderElector | None,
        started: set[str],
    ) -> None:
        """`started` are the names of controllers that run."""
        self.name = manager.name
        check_feeds(manager.controllers)
        self.controllers: Sequence[Controller[Any]] = [
            within_one_cluster(controller) for controller in manager.controllers if controller.clusters != "home"
        ]
        self.limits = manager.config.cache
        self.numbers = manager.numbers
        self.leading = asyncio.Event()
        self.observers: Sequence[Observer] = manager.on_reconciled
        self.story = manager.story
        self.recorder: Recorder | None = None
        """That of the home cluster."""
        self.provider_problem = ""
        self._field_managers = {controller.name: controller.field_manager for controller in manager.controllers}
        self._manager = manager
        self._started = started
        self._provider = provider
        self._home = home
        self._elector = elector
        self._backoff = Backoff(FIRST_DELAY, LONGEST_DELAY)
        self._slots: dict[str, _Slot] = {}
        self._unusable: dict[str, str] = {}
        self._ending: dict[str, set[asyncio.Task[None]]] = {}
        """Name of a cluster -> its connections that are ending."""
        self._group: asyncio.TaskGroup
        self._draining = False
        manager.health.remarks["clusters"] = self.remarks
        manager.numbers.more.append(self.families)

    # -------------------------------------------------------------- what members have in common

    def fenced(self, client: Client) -> Client:
        return client if self._elector is None else Fenced(client, self._elector)

    def settings_of(self, controller: Controller[Any]) -> Settings:
        return (controller.settings or Settings()).over(self._manager.settings)

    def recorder_of(self, writer: Client) -> Recorder:
        given = self._manager.recorder
        return EventRecorder(writer, self.name) if given is None else with_new_order(given)

    async def dependencies_of(self, controller: Controller[Any]) -> None:
        for dependency in controller.depends_on:
            await wait_for(dependency, self._started.__contains__)

    @property
    def fed(self) -> Sequence[tuple[Controller[Any], Engine[Any]]]:
        engines = self._manager.engines
        return [(c, engines[c.name]) for c in self._manager.controllers if c.name in engines and across_clusters(c)]

    def others_of(self, controller: str) -> OtherClusters:
        """What the reconciles of a controller see."""
        return OtherClusters(lambda: ["", *sorted(self.members)], lambda name: self._access(controller, name))

    def _access(self, controller: str, name: str) -> ClusterAccess | None:
        if name:
            member = self.members.get(name)
            client, caches = (None, None) if member is None else (member.writer, member.declared.get(controller))
        else:
            engine = self._manager.engines.get(controller)
            client, caches = self.fenced(self._home), None if engine is None else engine.caches
        if client is None:
            return None
        caches = DeclaredCaches(None) if caches is None else caches
        return ClusterAccess(name, client, caches, self._field_managers.get(controller) or self.name)

    # -------------------------------------------------------------- state

    @property
    def members(self) -> dict[str, Member]:
        """The connected clusters. One may be away all the same."""
        return {name: slot.member for name, slot in self._slots.items() if slot.member is not None}

    def remarks(self) -> str:
        """What is wrong with which cluster."""
        texts = [f"the provider: {self.provider_problem}"] if self.provider_problem else []
        texts += [f"{name} cannot be used: {reason}" for name, reason in sorted(self._unusable.items())]
        for name, slot in sorted(self._slots.items()):
            problem = slot.problem or ("" if slot.member is None else slot.member.problem)
            if problem:
                texts.append(f"{name} is away: {problem}")
        return "; ".join(texts)

    def families(self) -> Iterable[Any]:
        """Metrics by cluster; those of controllers have the label `controller="name@cluster"`."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        up = GaugeMetricFamily("konverge_cluster_up", "Whether a cluster's caches are current", labels=["cluster"])
        objects = GaugeMetricFamily("konverge_cluster_cached_objects", "Objects in its caches", labels=["cluster"])
        requests = CounterMetricFamily(
            "konverge_cluster_requests", "Requests to a cluster", labels=["cluster", "code", "method"]
        )
        for name in sorted({*self._slots, *self._unusable}):
            slot = self._slots.get(name)
            member = None if slot is None else slot.member
            up.add_metric([name], 1.0 if member is not None and not member.problem else 0.0)
            if member is not None:
                objects.add_metric([name], member.caches.size)
                for (code, method), count in member.requests.counts.items():
                    requests.add_metric([name, code, method], count)
        return [up, objects, requests]

    # -------------------------------------------------------------- life

    async def run(self) -> None:
        """Follow the provider, until it is cancelled."""
        async with asyncio.TaskGroup() as self._group:
            while True:
                try:
                    await self._follow()
                    self.provider_problem = "it ended"
                except Exception as error:
                    self.provider_problem = str(error) or type(error).__name__
                    _log.warning("the clusters cannot be read: %s; those that there are stay", self.provider_problem)
                await asyncio.sleep(self._backoff.delay(""))

    async def _follow(self) -> None:
        stream = self._provider.clusters(self._home)
        try:
            async for known in stream:
                self.provider_problem = ""
                self._backoff.forget("")
                self._update(known)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def lead(self) -> None:
        """This process leads from now on: reconciles begin."""
        self.leading.set()
        self._started.update(controller.name for controller in self.controllers if controller.clusters == "others")

    async def drain(self, limit: float) -> None:
        """Take no new keys and finish the queued ones; cancel what takes too long."""
        self._draining = True
        tasks = [slot.task for slot in self._slots.values()]
        tasks += [task for ending in self._ending.values() for task in ending]
        for slot in self._slots.values():
            if slot.member is None:
                slot.task.cancel()  # it is not connected: there is nothing to finish
            else:
                slot.member.shut_down()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=limit)
            for task in late:
                _log.warning("%s did not finish within %g s and is cancelled", task.get_name(), limit)
                task.cancel()
            await asyncio.wait(tasks)

    def _update(self, known: Known) -> None:
        if self._draining:
            return
        for name in self._slots.keys() - known.keys():
            _log.info("cluster %s is gone: its reconciles end, and its caches are dropped", name)
            self._end(name, self._slots.pop(name).task)
            self._backoff.forget(name)
        for name in self._unusable.keys() - known.keys():
            del self._unusable[name]
        for name, entry in known.items():
            if isinstance(entry, Unusable):
                self._report_unusable(name, entry)
                continue
            self._unusable.pop(name, None)
            slot = self._slots.get(name)
            if slot is None or slot.fingerprint != entry.fingerprint:
                self._start(name, entry, slot)

    def _report_unusable(self, name: str, entry: Unusable) -> None:
        if self._unusable.get(name) == entry.reason:
            return
        self._unusable[name] = entry.reason
        kept = "; its connection stays as it was" if name in self._slots else ""
        _log.warning("cluster %s cannot be used: %s%s", name, entry.reason, kept)
        if entry.about is not None and self.recorder is not None:
            self.recorder.event("ClusterUnusable", entry.reason, about=entry.about, type="Warning")

    def _start(self, name: str, connection: Connection, before: _Slot | None) -> None:
        if before is not None:
            _log.info("cluster %s is described differently: it is connected again", name)
            self._end(name, before.task)
        self._backoff.forget(name)
        task = self._group.create_task(self._keep(name, connection), name=f"cluster {name}")
        self._slots[name] = _Slot(connection.fingerprint, task)

    def _end(self, name: str, task: asyncio.Task[None]) -> None:
        self._ending.setdefault(name, set()).add(task)
        task.add_done_callback(lambda done: self._ended(name, done))
        task.cancel()

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._ending[name].discard(task)
        if not self._ending[name]:
            del self._ending[name]

    async def _keep(self, name: str, connection: Connection) -> None:
        """Keep one cluster connected. Two connections of one cluster never work at the same time."""
        while ending := self._ending.get(name):
            await asyncio.wait(set(ending))
        slot, loop = self._slots[name], asyncio.get_running_loop()
        while self._is_current(name, slot):
            began = loop.time()
            try:
                await self._connected(name, connection, slot)
            except Exception as error:
                if not self._is_current(name, slot):
                    return  # it was to end, and failed at that
                if loop.time() - began > LONGEST_DELAY:
                    self._backoff.forget(name)
                slot.problem = _text_of(error)
                _log.warning("cluster %s failed: %s; trying again", name, slot.problem)
                await asyncio.sleep(self._backoff.delay(name))

    def _is_current(self, name: str, slot: _Slot) -> bool:
        return not self._draining and self._slots.get(name) is slot

    async def _connected(self, name: str, connection: Connection, slot: _Slot) -> None:
        client = connection.connect()
        try:
            slot.member, slot.problem = Member(name, client, self), ""
            _log.info("cluster %s at %s is connected", name, client.server)
            self._notify(name)
            await slot.member.run()
        finally:
            slot.member = None
            self._notify(name)
            if not connection.keep_open:
                await client.aclose()

    def _notify(self, name: str) -> None:
        """A cluster came or went: objects at home that have children elsewhere are looked at."""
        for _, engine in self.fed:
            for key, _ in list(engine.caches.primary.items()):
                engine.queue.add(key, priority=LOW, reason=External(f"cluster {name}", key))


def _text_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
