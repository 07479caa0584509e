"""The garbage collector: background, foreground and orphan deletion by owner references.

The graph (`graph.py`) says which objects to check. Here each is checked: the object and its owners are read from the
API server, and the result is one write. An object is deleted only if the server has confirmed for each of its owners
that there is no object of that uid. Everything else (a kind that is not served, a refused or failed request, an answer
that cannot be read) is no confirmation: the object is kept and checked again. Every write names the uid and the
version that it means, so it never hits another object, or one whose owners have changed.

Upstream: pkg/controller/garbagecollector/garbagecollector.go.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

import msgspec

from konverge.cache import Change
from konverge.client import Client, ClientError
from konverge.client.options import Propagation
from konverge.kube.gc.graph import Effects, Graph, Invalid, Node
from konverge.kube.gc.metadata import FOREGROUND, ORPHAN, Identity, Metadata, Reference, read_metadata
from konverge.kube.gc.monitors import Monitors
from konverge.kube.gc.operations import NamespacedOwner, Operations, UnservedKind
from konverge.kube.pod_control import first_refusal
from konverge.objects.meta import Object, ObjectMeta
from konverge.objects.resource import Resource
from konverge.observe.events import EventRecorder
from konverge.workqueue import ShutDown, WorkQueue

WORKERS = 20
"""Upstream: the default of ConcurrentGCSyncs."""

_log = logging.getLogger("konverge.kube.gc")

_CHECK: Literal["check"] = "check"
_ORPHAN: Literal["orphan"] = "orphan"
Work = tuple[Literal["check", "orphan"], str]
"""What to do, and the uid of the object."""


class GarbageCollector:
    """A service: `run` collects garbage until it is cancelled."""

    name = "garbage-collector"

    async def run(self, client: Client) -> None:
        self._client = client
        self._graph = Graph()
        self._queue: WorkQueue[Work] = WorkQueue()
        self._unserved: set[Work] = set()
        self._recorder = EventRecorder(client, "garbage-collector-controller")
        self._monitors = Monitors(client, self._on_change, self._on_stopped, self._on_discovered)
        self._operations = Operations(client, self._monitors.kind)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run(), name="gc events")
            group.create_task(self._monitors.run(), name="gc monitors")
            await self._monitors.synced.wait()
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"gc worker {number}")

    # -------------------------------------------------------------- observing

    def _on_change(self, resource: Resource, change: Change) -> None:
        try:
            now = read_metadata(change.latest.raw)
            before = read_metadata(change.old.raw) if change.old is not None and now.deleting else None
        except msgspec.DecodeError as error:
            _log.warning("%s %s cannot be read and is not collected: %s", resource.group_resource, change.key, error)
            return
        identity = now.identity(resource)
        self._follow(self._graph.delete(identity) if change.new is None else self._graph.observe(identity, now, before))

    def _on_stopped(self, resource: Resource) -> None:
        """Its objects are checked when the kind is served again: those that are gone by then were not seen to go."""
        for uid, node in self._graph.nodes.items():
            if (node.identity.api_version, node.identity.kind) == (resource.api_version, resource.kind):
                self._queue.add((_CHECK, uid))

    def _on_discovered(self) -> None:
        unserved, self._unserved = self._unserved, set()
        self._monitors.has_unknown = False
        for work in unserved:
            self._queue.add(work)

    def _follow(self, effects: Effects) -> None:
        for uid in effects.attempt:
            self._queue.add((_CHECK, uid))
        for uid in effects.attempt_later:
            self._queue.add_rate_limited((_CHECK, uid))
        for uid in effects.orphan:
            self._queue.add((_ORPHAN, uid))
        for invalid in effects.invalid:
            self._report(invalid)

    # upstream: reportInvalidNamespaceOwnerRef
    def _report(self, invalid: Invalid) -> None:
        dependent = invalid.dependent
        meta = ObjectMeta(name=dependent.name, namespace=dependent.namespace, uid=dependent.uid)
        about = Object(api_version=dependent.api_version, kind=dependent.kind, metadata=meta)
        owner = invalid.owner.identity(dependent.namespace)
        message = f'ownerRef {owner} does not exist in namespace "{dependent.namespace}"'
        self._recorder.event("OwnerRefInvalidNamespace", message, about=about, type="Warning")

    # -------------------------------------------------------------- working

    async def _work(self) -> None:
        while True:
            try:
                item = await self._queue.get()
            except ShutDown:
                return
            try:
                if await self._process(item.key):
                    self._queue.forget(item.key)
                else:
                    self._queue.add_rate_limited(item.key)
            finally:
                self._queue.done(item.key)

    # upstream: attemptToDeleteWorker, attemptToOrphanWorker
    async def _process(self, work: Work) -> bool:
        """Check one object or orphan its dependents; returns whether that is done, or must be tried again."""
        action, uid = work
        node = self._graph.nodes.get(uid)
        if node is None:
            return True
        try:
            if action == _ORPHAN:
                await self._orphan_dependents(node)
                return True
            return await self._check(node)
        except NamespacedOwner:
            return True
        except UnservedKind as error:
            _log.debug("%s: %s; it is kept", node.identity, error)
            self._unserved.add(work)
            self._monitors.has_unknown = True
        except ClientError as error:
            _log.info("%s: %s; it is tried again later", node.identity, error)
        except Exception:
            _log.exception("%s: a defect of the garbage collector; it is tried again later", node.identity)
        return False

    # upstream: attemptToDeleteItem
    async def _check(self, node: Node) -> bool:
        if node.deleting and not node.deletes_dependents:
            return True
        identity = node.identity
        live = await self._operations.live(identity)
        if live is None:
            return self._is_gone(identity)
        if node.deletes_dependents:
            await self._release_when_no_dependents(node)
        elif live.owners and not await self._check_owners(node, live):
            return self._is_gone(identity)
        # A virtual node is polled until an informer shows the object: it may come and go between two watches.
        return not node.virtual

    def _is_gone(self, identity: Identity) -> bool:
        """The server has no such object. Upstream: enqueueVirtualDeleteEvent."""
        effects = self._graph.delete_unverified(identity)
        self._follow(effects)
        return not effects.attempt_later  # else its failures are still counted

    # upstream: classifyReferences and what follows in attemptToDeleteItem
    async def _check_owners(self, node: Node, live: Metadata) -> bool:
        """Solid owners keep the object, references to absent ones are removed, owners that wait for it delete it.

        Returns whether the object is still there.
        """
        solid, dangling, waiting = [], [], []
        for reference in live.owners:
            owner = await self._owner(node, reference)
            if owner is None:
                dangling.append(reference)
            elif owner.deletes_dependents:
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid:
            await self._operations.drop_references(
                node.identity, {reference.uid for reference in (*dangling, *waiting)}
            )
            return True
        if waiting and node.dependents:
            # Its own dependents are deleted first, so that the owner waits for all of them.
            if any(dependent.deletes_dependents for dependent in self._graph.dependents_of(live.uid)):
                await self._operations.unblock(node.identity)
                live = await self._operations.live(node.identity) or live
            return await self._operations.delete(node.identity, live, "Foreground")
        return await self._operations.delete(node.identity, live, _policy_of(live))

    # upstream: isDangling
    async def _owner(self, node: Node, reference: Reference) -> Metadata | None:
        """The owner, or None if the server has confirmed that there is none."""
        namespace = node.identity.namespace
        absent = self._graph.absent
        if reference.identity("") in absent or reference.identity(namespace) in absent:
            return None
        _, place = self._operations.locate(reference.identity(namespace))
        identity = reference.identity(place)
        owner = await self._operations.live(identity)
        if owner is None:
            absent.add(identity)
        return owner

    # upstream: processDeletingDependentsItem
    async def _release_when_no_dependents(self, node: Node) -> None:
        blocking = self._graph.blocking_dependents(node.identity.uid)
        if not blocking:
            await self._operations.drop_finalizer(node.identity, FOREGROUND)
        for dependent in blocking:
            if not dependent.deletes_dependents:
                self._queue.add((_CHECK, dependent.identity.uid))

    # upstream: orphanDependents
    async def _orphan_dependents(self, node: Node) -> None:
        uid = node.identity.uid
        dependents = [dependent.identity for dependent in self._graph.dependents_of(uid)]
        results = await asyncio.gather(
            *(self._operations.drop_references(dependent, {uid}) for dependent in dependents), return_exceptions=True
        )
        refusal = first_refusal(results)
        if refusal is not None:
            raise refusal
        await self._operations.drop_finalizer(node.identity, ORPHAN)


def _policy_of(live: Metadata) -> Propagation:
    """How a dependent is deleted: as its own finalizers ask for, else in the background."""
    if ORPHAN in live.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in live.finalizers else "Background"


def services() -> list[GarbageCollector]:
    return [GarbageCollector()]
