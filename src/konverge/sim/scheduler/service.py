"""The scheduler at work: watches, places one pod after the other, binds, and tries again when something has changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from konverge.cache import CacheSpec, Change, ChangeType, Informer, Lister
from konverge.client import Client, ClientError, MergePatch, NotFound, StrategicPatch
from konverge.objects import decoder, times
from konverge.objects.kinds.core_v1 import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.meta import Object, ObjectMeta
from konverge.observe.events import EventRecorder
from konverge.runtime import Request
from konverge.sim.scheduler import filters
from konverge.sim.scheduler.filters import Claims, Sacrifice, Volumes, making_room, sacrifice
from konverge.sim.scheduler.spreading import AFFINITY, ANTI_AFFINITY, EXISTING, SPREAD, Neighbours
from konverge.sim.scheduler.state import TERMINAL, ClusterState, NodeInfo, PodInfo, describe
from konverge.sim.volumes import SELECTED_NODE
from konverge.workqueue import WorkQueue

NAME = "default-scheduler"
MANAGER = "kube-scheduler"
KINDS: tuple[type[Object], ...] = (Pod, Node, Namespace, PersistentVolumeClaim, PersistentVolume, StorageClass)

CURED_BY_NEW = frozenset((AFFINITY, SPREAD))
"""What a pod that is placed may change for those that wait."""
CURED_BY_LABELS = CURED_BY_NEW | {ANTI_AFFINITY}
"""What other labels of a placed pod may change for them."""
CURED_BY_NAMESPACE = frozenset((AFFINITY, ANTI_AFFINITY, EXISTING))
"""What other labels of a namespace may change for them."""


class Scheduler:
    """A `Service`: `run` places pods until it is cancelled."""

    name = "scheduler"

    def __init__(self, *, events: bool = True) -> None:
        self.state = ClusterState()
        self.queue: WorkQueue[Request] = WorkQueue()
        self.synced = asyncio.Event()
        self._events = events
        self._unplaced: dict[Request, frozenset[str]] = {}
        """Pods that wait, and what nodes were refused for."""
        self._decode = decoder(Pod).decode
        self._client: Client
        self._recorder: EventRecorder
        self._pods: Informer
        self._claims: Claims

    async def run(self, client: Client) -> None:
        informers = {kind: Informer(client.caller, CacheSpec(resource=kind.resource)) for kind in KINDS}
        self._client = client
        self._recorder = EventRecorder(client, NAME)
        self._pods = informers[Pod]
        self._claims = Claims(
            Lister(informers[PersistentVolumeClaim], decoder(PersistentVolumeClaim).decode),
            Lister(informers[PersistentVolume], decoder(PersistentVolume).decode),
            Lister(informers[StorageClass], decoder(StorageClass).decode),
        )
        handlers: dict[type[Object], Callable[[Change], None]] = {
            Pod: self._pod_changed,
            Node: self._node_changed,
            Namespace: self._namespace_changed,
        }
        for kind, informer in informers.items():
            informer.add_handler(handlers.get(kind, self._something_changed))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run(), name="scheduler events")
            for kind, informer in informers.items():
                group.create_task(informer.run(), name=f"scheduler cache {kind.__name__}")
            for informer in informers.values():
                await informer.synced.wait()
            self.synced.set()
            await self._work()

    @property
    def informers(self) -> list[Informer]:
        return [self._pods] if hasattr(self, "_pods") else []

    # -------------------------------------------------------------- what changes

    def _pod_changed(self, change: Change) -> None:
        key = change.key
        if change.new is None or (change.old is not None and change.old.uid != change.new.uid):
            self._unplaced.pop(key, None)
            if self.state.drop((key.namespace, key.name)):
                self._try_again()
            if change.new is None:
                return
        pod = self._decode(change.new.raw)
        if pod.status.phase in TERMINAL:
            if self.state.drop((key.namespace, key.name)):
                self._try_again()
        elif pod.spec.node_name:
            self._unplaced.pop(key, None)
            before = self.state.find((key.namespace, key.name))
            self._placed_pod_changed(before, self.state.place(pod, pod.spec.node_name))
        elif _ours(pod):
            if pod.status.nominated_node_name:
                self.state.promise(describe(pod), pod.status.nominated_node_name)
            self.queue.add(key, priority=pod.spec.priority or 0)

    def _placed_pod_changed(self, before: PodInfo | None, now: PodInfo) -> None:
        """Upstream: isSchedulableAfterPodChange of InterPodAffinity, PodTopologySpread and NodeResourcesFit."""
        if before is None:
            self._try_again(CURED_BY_NEW)
        elif any(amount > now.requests.get(key, 0) for key, amount in before.requests.items()):
            self._try_again()
        elif before.meta.labels != now.meta.labels:
            self._try_again(CURED_BY_LABELS)

    def _node_changed(self, change: Change) -> None:
        node = decoder(Node).decode(change.new.raw) if change.new is not None else None
        known = self.state.nodes.get(change.key.name)
        before = _offer(known.node) if known is not None else None
        self.state.node_changed(change.key.name, node)
        if node is not None and before != _offer(node):
            self._try_again()

    def _namespace_changed(self, change: Change) -> None:
        name = change.key.name
        labels = decoder(Namespace).decode(change.new.raw).metadata.labels if change.new is not None else None
        if self.state.namespace_changed(name, labels):
            self._try_again(CURED_BY_NAMESPACE)

    def _something_changed(self, change: Change) -> None:
        if change.type is not ChangeType.DELETED:
            self._try_again()

    def _try_again(self, cured: frozenset[str] | None = None) -> None:
        """Those that wait, or only those of which a node was refused for one of these reasons."""
        for key in sorted(key for key, reasons in self._unplaced.items() if cured is None or cured & reasons):
            self.queue.add(key)

    # -------------------------------------------------------------- placing

    async def _work(self) -> None:
        while True:
            item = await self.queue.get()
            try:
                await self._place(item.key)
                self.queue.forget(item.key)
            except ClientError:
                self.queue.add_rate_limited(item.key)
            finally:
                self.queue.done(item.key)

    async def _place(self, key: Request) -> None:
        record = self._pods.get(key)
        pod = self._decode(record.raw) if record is not None else None
        if pod is None or not _ours(pod):
            self._unplaced.pop(key, None)
            return
        info = describe(pod)
        volumes = self._claims.of(info, self.state)
        neighbours = Neighbours(pod, self.state)
        refused: Counter[str] = Counter()
        fitting, hopeless = [], 0
        for node in self.state.nodes.values():
            reasons = [volumes.problem] if volumes.problem else filters.problems(pod, info, node, neighbours)
            reasons = reasons or volumes.in_use or volumes.problems(node)
            if not reasons:
                fitting.append(node)
                continue
            refused.update(reasons)
            hopeless += bool(filters.HOPELESS & set(reasons) or volumes.problems(node))
        if fitting:
            await self._choose(pod, filters.best(pod, info, fitting, neighbours), volumes)
        else:
            await self._refuse(pod, info, volumes, refused, hopeless, neighbours)

    async def _choose(self, pod: Pod, node: NodeInfo, volumes: Volumes) -> None:
        if volumes.waiting:
            # The claims hear of their volumes or of the node first; the pod follows when they are bound.
            self._unplaced[_key(pod)] = frozenset()
            taken = volumes.taken(node)
            for claim in volumes.waiting:
                if claim.metadata.name in taken:
                    await self._reserve(taken[claim.metadata.name], claim)
                elif not claim.spec.volume_name and claim.metadata.annotations.get(SELECTED_NODE) != node.name:
                    await self._annotate_claim(claim, node.name)
            return
        await self._bind(pod, node.name)

    async def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """For the name of the claim; its uid comes with the binding. A volume that has changed is looked at again."""
        if volume.spec.claim_ref is not None:
            return
        meta = {"resourceVersion": volume.metadata.resource_version}
        ref = {"kind": claim.kind, "namespace": claim.metadata.namespace, "name": claim.metadata.name}
        patch = MergePatch({"metadata": meta, "spec": {"claimRef": ref}})
        name = volume.metadata.name
        reserved = await self._client.patch(PersistentVolume, name, patch, field_manager=MANAGER)
        self._claims.assume(volume, reserved)

    async def _annotate_claim(self, claim: PersistentVolumeClaim, node: str) -> None:
        patch = MergePatch({"metadata": {"annotations": {SELECTED_NODE: node}}})
        meta = claim.metadata
        await self._client.patch(PersistentVolumeClaim, meta.name, patch, meta.namespace, field_manager=MANAGER)

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        self.state.place(pod, node)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create_sub(Pod, meta.name, "binding", body, meta.namespace)
        except ClientError as error:
            # Gone, or bound by another scheduler, or a passing error: the next attempt shows which.
            self.state.drop((meta.namespace, meta.name))
            if isinstance(error, NotFound):
                return
            raise
        self._unplaced.pop(_key(pod), None)
        self._try_again(CURED_BY_NEW)
        self._record_event(pod, "Normal", "Scheduled", f"Successfully assigned {meta.namespace}/{meta.name} to {node}")

    async def _refuse(
        self, pod: Pod, info: PodInfo, volumes: Volumes, refused: Counter[str], hopeless: int, neighbours: Neighbours
    ) -> None:
        self._unplaced[_key(pod)] = frozenset(refused)
        if volumes.problem:
            summary = f"0/{len(self.state.nodes)} nodes are available"
            helpless = f"{len(self.state.nodes)} Preemption is not helpful for scheduling"
            await self._report(pod, f"{summary}: {volumes.problem}. preemption: {summary}: {helpless}.")
            return
        if making_room(pod, info, self.state):
            return
        victims = sacrifice(pod, info, self.state, neighbours, volumes)
        if victims is not None:
            self.state.promise(info, victims.node)
            await self._preempt(pod, victims)
        message = filters.refusal(self.state, refused, filters.preemption_message(self.state, hopeless))
        await self._report(pod, message, victims.node if victims else "")

    async def _report(self, pod: Pod, message: str, nominated: str = "") -> None:
        """The condition and the event, when they say something new."""
        meta = pod.metadata
        present = next((condition for condition in pod.status.conditions if condition.type == "PodScheduled"), None)
        if present is not None and present.message == message and not nominated:
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        since = present.last_transition_time if present is not None and present.status == "False" else None
        condition["lastTransitionTime"] = since or times.now()
        status: dict[str, Any] = {"conditions": [condition]}
        if nominated:
            status["nominatedNodeName"] = nominated
        body = StrategicPatch({"metadata": {"uid": meta.uid}, "status": status})
        try:
            await self._client.patch(Pod, meta.name, body, meta.namespace, subresource="status", field_manager=MANAGER)
        except NotFound:
            return
        self._record_event(pod, "Warning", "FailedScheduling", message)

    async def _preempt(self, pod: Pod, chosen: Sacrifice) -> None:
        for victim in chosen.victims:
            meta = victim.meta
            message = f"Preempted by pod {pod.metadata.uid} on node {chosen.node}"
            self._record_event(Pod(metadata=meta, spec=PodSpec(containers=[])), "Normal", "Preempted", message)
            try:
                await self._mark(pod, meta)
                await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
            except NotFound:
                continue

    async def _mark(self, pod: Pod, victim: ObjectMeta) -> None:
        """Why a pod is about to go. Upstream: PreemptPod (pkg/scheduler/framework/preemption)."""
        message = f"{pod.spec.scheduler_name or NAME}: preempting to accommodate a higher priority pod"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        condition |= {"message": message, "lastTransitionTime": times.now()}
        body = StrategicPatch({"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}})
        await self._client.patch(Pod, victim.name, body, victim.namespace, subresource="status", field_manager=MANAGER)

    def _record_event(self, pod: Pod, type: str, reason: str, message: str) -> None:
        if self._events:
            self._recorder.event(reason, message, about=pod, type=type)


def _ours(pod: Pod) -> bool:
    """It looks for a place, and we are the one to find it."""
    waits = not pod.spec.node_name and not pod.spec.scheduling_gates and pod.metadata.deletion_timestamp is None
    return waits and (pod.spec.scheduler_name or NAME) == NAME and pod.status.phase not in TERMINAL


def _key(pod: Pod) -> Request:
    return Request(pod.metadata.namespace, pod.metadata.name)


def _offer(node: Node) -> tuple[object, ...]:
    """What of a node decides about pods; heartbeats are not among it."""
    return node.spec, node.metadata.labels, node.status.allocatable
