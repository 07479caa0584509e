"""The garbage collector: background, foreground and orphan deletion by owner references.

The graph (`graph.py`) says which objects to check. Here each is checked: its owners are looked up (in the graph first,
then on the server, by uid), and the result is one write. Every write names the uid that it means, so it never hits
another object that has reused the name.

Upstream: pkg/controller/garbagecollector/garbagecollector.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from konverge.cache import CacheSpec, Change, Informer
from konverge.client import ApiStatusError, Client, ClientError, MergePatch, NotFound, UnknownKind
from konverge.client.discovery import Served
from konverge.kube.gc.graph import FOREGROUND, ORPHAN, Graph, Node, Reference, node_of
from konverge.objects.resource import Resource
from konverge.workqueue import ShutDown, WorkQueue

WORKERS = 20
"""Upstream: the default of ConcurrentGCSyncs."""

_log = logging.getLogger("konverge.kube.gc")


class GarbageCollector:
    """A service: `run` collects garbage until it is cancelled."""

    name = "garbage-collector"

    async def run(self, client: Client) -> None:
        self._client = client
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue()
        monitors = Monitors(client, self._on_change)
        async with asyncio.TaskGroup() as group:
            group.create_task(monitors.run(), name="gc monitors")
            await monitors.synced.wait()
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"gc worker {number}")

    def _on_change(self, resource: Resource, change: Change) -> None:
        if change.new is None:
            wake = self._graph.remove(change.latest.uid)
        else:
            wake = self._graph.put(node_of(resource, change.new))
        for uid in wake:
            self._queue.add(uid)

    async def _work(self) -> None:
        while True:
            try:
                item = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._check(item.key)
                self._queue.forget(item.key)
            except ClientError as error:
                _log.info("%s: %s; it is retried later", item.key, error)
                self._queue.add_rate_limited(item.key)
            finally:
                self._queue.done(item.key)

    # -------------------------------------------------------------- one object

    # upstream: attemptToDeleteItem
    async def _check(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is None:
            return
        live = await self._live(node.resource, node.namespace, node.name)
        if live is None or live["metadata"]["uid"] != uid:
            for other in self._graph.remove(uid):
                self._queue.add(other)
            return
        node = node_of(node.resource, live)
        if node.orphans_dependents:
            await self._orphan_dependents(node)
        elif node.deletes_dependents:
            await self._release_when_no_dependents(node)
        elif not node.deleting and node.owners:
            await self._check_owners(node)

    # upstream: classifyReferences
    async def _check_owners(self, node: Node) -> None:
        """Solid owners keep the object, references to absent ones are removed, owners that wait for it delete it."""
        solid, dangling, waiting = [], [], []
        for reference in node.owners:
            owner = await self._owner(node, reference)
            if owner is None:
                dangling.append(reference)
            elif owner.deletes_dependents:
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid:
            if dangling or waiting:
                await self._drop_references(node, {ref.uid for ref in (*dangling, *waiting)})
        elif waiting and self._graph.dependents_of(node.uid):
            # Its own dependents are deleted first, so that the owner waits for all of them.
            if any(dep.deletes_dependents for dep in self._graph.dependents_of(node.uid)):
                await self._unblock(node)
            await self._delete(node, "Foreground")
        else:
            await self._delete(node, _policy_of(node))

    # upstream: isDangling
    async def _owner(self, node: Node, reference: Reference) -> Node | None:
        known = self._graph.nodes.get(reference.uid)
        if known is not None:
            foreign = known.resource.namespaced and known.namespace != node.namespace
            return None if foreign else known
        try:
            resource = await self._client.mapper.kind(reference.api_version, reference.kind)
        except UnknownKind:
            return None
        if resource.namespaced and not node.namespace:
            return None  # a cluster-scoped object cannot have an owner in a namespace
        live = await self._live(resource, node.namespace if resource.namespaced else "", reference.name)
        return node_of(resource, live) if live is not None and live["metadata"]["uid"] == reference.uid else None

    # -------------------------------------------------------------- writes

    # upstream: processDeletingDependentsItem
    async def _release_when_no_dependents(self, node: Node) -> None:
        blocking = self._graph.blocking_dependents(node.uid)
        if not blocking:
            await self._drop_finalizer(node, FOREGROUND)
        for dependent in blocking:
            if not dependent.deletes_dependents:
                self._queue.add(dependent.uid)

    # upstream: orphanDependents
    async def _orphan_dependents(self, node: Node) -> None:
        for dependent in self._graph.dependents_of(node.uid):
            await self._drop_references(dependent, {node.uid})
        await self._drop_finalizer(node, ORPHAN)

    async def _delete(self, node: Node, policy: Any) -> None:
        with contextlib.suppress(NotFound):  # a Conflict may mean another object of the same name: it is checked again
            await self._client.delete(node.resource, node.name, node.namespace, uid=node.uid, propagation=policy)

    async def _drop_references(self, node: Node, uids: set[str]) -> None:
        live = await self._live(node.resource, node.namespace, node.name)
        if live is None or live["metadata"]["uid"] != node.uid:
            return
        present = live["metadata"].get("ownerReferences", [])
        kept = [reference for reference in present if reference["uid"] not in uids]
        if len(kept) != len(present):
            await self._patch(node, live, {"ownerReferences": kept or None})

    async def _unblock(self, node: Node) -> None:
        live = await self._live(node.resource, node.namespace, node.name)
        if live is not None:
            references = [{**ref, "blockOwnerDeletion": False} for ref in live["metadata"].get("ownerReferences", [])]
            await self._patch(node, live, {"ownerReferences": references})

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        live = await self._live(node.resource, node.namespace, node.name)
        if live is None or live["metadata"]["uid"] != node.uid:
            return
        present = live["metadata"].get("finalizers", [])
        if finalizer in present:
            await self._patch(node, live, {"finalizers": [name for name in present if name != finalizer] or None})

    async def _patch(self, node: Node, live: dict[str, Any], metadata: dict[str, Any]) -> None:
        """Guarded by the version that was read: after another client's change it is a Conflict, and retried."""
        guarded = {**metadata, "uid": node.uid, "resourceVersion": live["metadata"]["resourceVersion"]}
        with contextlib.suppress(NotFound):
            await self._client.patch(node.resource, node.name, MergePatch({"metadata": guarded}), node.namespace)

    async def _live(self, resource: Resource, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
        except ApiStatusError as error:
            if error.code == 405:
                return None
            raise


def _policy_of(node: Node) -> str:
    """How a dependent is deleted: as its own finalizers ask for, else in the background."""
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"


# ------------------------------------------------------------------ what there is

# The garbage collector looks at everything, so it cannot declare what it watches. `Monitors` asks discovery what there
# is, keeps one metadata-only informer for each resource, and asks again when definitions change. Upstream:
# GraphBuilder.syncMonitors (graph_builder.go), GarbageCollector.Sync.

DEFINITIONS = {("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")}
"""Kinds whose objects say what is served."""
DISCOVERY_DELAYS = (1.0, 5.0, 30.0, 600.0)
"""Seconds between two requests for discovery after a definition changed: discovery follows it, but not at once. The
last is for changes that no definition announces, such as those of an aggregated server. Upstream asks every 30 s.
"""

_NEEDED = {"delete", "list", "watch"}
# Events have no owners and are many, and events.k8s.io serves the same objects again.
_IGNORED = {("", "events"), ("events.k8s.io", "events")}

OnChange = Callable[[Resource, Change], None]


def deletable(every: Iterable[Served]) -> list[Resource]:
    """What can be listed, watched and deleted, each in the preferred version of its group, or else in its first."""
    chosen: dict[tuple[str, str], Served] = {}
    for served in every:
        name = (served.resource.group, served.resource.plural)
        if name not in _IGNORED and set(served.verbs) >= _NEEDED and (served.preferred or name not in chosen):
            chosen[name] = served
    return [served.resource for served in chosen.values()]


class Monitors:
    """Informers of all resources. `run` follows what the server serves until it is cancelled."""

    def __init__(self, client: Client, on_change: OnChange) -> None:
        self._client = client
        self._on_change = on_change
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self.synced = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            quiet = len(DISCOVERY_DELAYS) - 1
            step = quiet
            while True:
                self._changed.clear()
                try:
                    await self._follow(group)
                except ClientError as error:
                    _log.warning("discovery failed and is asked again soon: %s", error)
                    step = min(step, quiet - 1)
                try:
                    async with asyncio.timeout(DISCOVERY_DELAYS[step]):
                        await self._changed.wait()
                    step = 0
                except TimeoutError:
                    step = min(step + 1, quiet)

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        self._client.mapper.invalidate()
        served = set(deletable(await self._client.mapper.all()))
        for resource in [resource for resource in self._running if resource not in served]:
            self._running.pop(resource).cancel()
        fresh = [self._start(group, resource) for resource in sorted(served - set(self._running), key=str)]
        for informer in fresh:
            await informer.synced.wait()
        self.synced.set()

    def _start(self, group: asyncio.TaskGroup, resource: Resource) -> Informer:
        informer = Informer(self._client.caller, CacheSpec(resource=resource, metadata_only=True))
        informer.add_handler(lambda change: self._on_change(resource, change))
        if (resource.group, resource.plural) in DEFINITIONS:
            informer.add_handler(self._redefined)
        self._running[resource] = group.create_task(informer.run(), name=f"monitor {resource.group_resource}")
        return informer

    def _redefined(self, change: Change) -> None:
        if not change.initial:
            self._changed.set()


def services() -> list[GarbageCollector]:
    return [GarbageCollector()]
