"""What steps work with: `ReconcileState` for one reconcile, `Tools` and `Options` for all of them.

The short memory in `Tools` only saves looks at databases. All that a decision depends on is in the resource's status,
so a new process goes on where the old one was killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec.structs import replace

from konverge import clock
from konverge.client import Conflict, Invalid, MergePatch, NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.operators.nacos.database import Databases
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.metrics import NacosMetrics
from konverge.operators.nacos.resource import AnyNacos, NacosStatus
from konverge.operators.nacos.server import HttpNacosServers, Identity, View
from konverge.operators.nacos.steps.outcome import Outcome
from konverge.operators.nacos.steps.reads import Reads
from konverge.runtime import Context, Request, find_condition, is_true, set_condition, set_controller_reference
from konverge.runtime.owners import is_controlled_by

PODS_READY = "PodsReady"
"""CheckKind passed."""
MEMBERS_VERIFIED = "MembersVerified"
"""CheckNacos passed."""
READY = "Ready"
PROGRESSING = "Progressing"
"""The workload was changed, and not all checks have passed since."""
UPGRADING = "Upgrading"
"""The servers are on their way to another version; the reason is the step, or why it is halted."""
HIBERNATED = "Hibernated"
"""No server runs, because the spec says so."""
_MEMORY_LIMIT = 10_000
"""Resources; the oldest entry goes first."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    requeue: float = 5.0
    """Until the next reconcile when one ended early: the document's number."""
    patience: float = 180.0
    """How long something may be wrong before the phase is Failed: the document's number."""
    health_interval: float = 30.0
    """Between checks of a running cluster; the readiness of pods is also watched."""
    whole_interval: float = 300.0
    """Between whole reconciles of a running cluster; the checks between them are a look at its servers."""
    database_interval: float = 60.0
    """Between checks of a healthy database."""
    call_timeout: float = 5.0
    """For one answer of one server."""
    concurrency: int = 64
    """Questions to servers in flight, of all clusters together."""
    verdict_lasts: float = 12.0
    """How old a verdict may be when UpdateStatus acts on it: two requeues and a little."""
    list_patience: float = 150.0
    """How long a running server may take to follow another list of members before it is restarted with it: kubelets
    update a mounted ConfigMap within a minute or so."""
    admission: float = 30.0
    """How long a ready server may be outside the raft groups before it is restarted; new servers need seconds."""
    stuck_after: float = 300.0
    """How long a pod may be useless before it is restarted; also the minimum time between two restarts of it."""


class Memory(msgspec.Struct):
    """When something of a resource (its database) was last checked without problems, and for which settings."""

    _seen: dict[Request, tuple[str, float]] = msgspec.field(default_factory=dict)

    def fresh(self, key: Request, fingerprint: str, interval: float) -> bool:
        return self.same(key, fingerprint) and clock.monotonic() - self._seen[key][1] < interval

    def same(self, key: Request, fingerprint: str) -> bool:
        seen = self._seen.get(key)
        return seen is not None and seen[0] == fingerprint

    def remember(self, key: Request, fingerprint: str) -> None:
        self._seen.pop(key, None)
        self._seen[key] = (fingerprint, clock.monotonic())
        if len(self._seen) > _MEMORY_LIMIT:
            del self._seen[next(iter(self._seen))]

    def forget(self, key: Request) -> None:
        self._seen.pop(key, None)


@dataclass(slots=True, kw_only=True)
class Tools:
    """Shared by all reconciles of a process."""

    databases: Databases
    servers: HttpNacosServers
    options: Options = field(default_factory=Options)
    databases_checked: Memory = field(default_factory=Memory)
    monitors_applied: Memory = field(default_factory=Memory)
    rules_applied: Memory = field(default_factory=Memory)
    metrics: NacosMetrics = field(default_factory=NacosMetrics)
    slots: asyncio.Semaphore = field(init=False)

    def forget(self, key: Request) -> None:
        """The resource is gone."""
        self.databases_checked.forget(key)
        self.monitors_applied.forget(key)
        self.rules_applied.forget(key)
        self.metrics.forget(key)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.options.concurrency)


class ReconcileState:
    """What the steps of one reconcile share."""

    desired: Desired
    """The desired state in the end. Read by PreCheck."""
    now: Desired
    """The desired state of this moment: a cluster shrinks step by step."""

    def __init__(self, ctx: Context[AnyNacos], tools: Tools) -> None:
        self.ctx = ctx
        self.reads = Reads(ctx, ctx.request.namespace)
        self.tools = tools
        self.changes: list[str] = []
        """The children that were written, for the message of the outcome."""
        self.wrote = False
        """A child was created, changed or deleted."""
        self.unapplied: Outcome | None = None
        """Why the desired change is not written yet, though the servers that run are looked after."""
        self.held: Outcome | None = None
        """Set while an edit that would lose data is held: `desired` is what is in force."""
        self.grow_later = False
        """The cluster keeps its size until its rollout is complete."""
        self.cannot_leave = ""
        """Why a server that has to leave could not be removed from the raft groups."""
        self.image_in_force = ""
        """The image of the servers that run, or ran; read by PreCheck."""
        self.image_wanted = ""
        """The image that the user asks for, also while that is held."""
        self.halted: Outcome | None = None
        """Why an upgrade does not go on."""
        self.may_roll = True
        """False while an upgrade is not to replace servers."""
        self.identity: Identity | None = None
        """With which the servers were asked."""
        self.views: Sequence[View] = ()
        """What the servers said, if CheckNacos asked them."""

    @property
    def key(self) -> Request:
        return self.ctx.request

    @property
    def generation(self) -> int:
        return self.ctx.obj.metadata.generation

    @property
    def status(self) -> NacosStatus:
        return self.ctx.obj.status

    @property
    def options(self) -> Options:
        return self.tools.options

    @property
    def settled(self) -> bool:
        """Every check has passed since the workload last changed."""
        return self.is_true(READY)

    @property
    def once_up(self) -> bool:
        """The servers have been up before: there may be data to be careful with."""
        return bool(self.status.version)

    # -------------------------------------------------------------- conditions

    def condition(self, type: str, status: bool | None, reason: str, message: str = "") -> None:
        """Set one of the Kubernetes conditions; None is Unknown."""
        value: Literal["Unknown"] | bool = "Unknown" if status is None else status
        set_condition(self.status.kube_conditions, type, value, reason, message, observed_generation=self.generation)

    def is_true(self, type: str) -> bool:
        return is_true(self.status.kube_conditions, type)

    def true_since(self, type: str) -> str:
        """Since when a condition is true; empty when it is not."""
        condition = find_condition(self.status.kube_conditions, type)
        return (condition.last_transition_time or "") if condition is not None and condition.status == "True" else ""

    def reason(self, type: str) -> str:
        """Of a condition, whatever its status; empty when there is none."""
        condition = find_condition(self.status.kube_conditions, type)
        return condition.reason if condition is not None else ""

    def message(self, type: str) -> str:
        """Of a condition, whatever its status."""
        condition = find_condition(self.status.kube_conditions, type)
        return condition.message if condition is not None else ""

    def drop(self, type: str) -> None:
        """A condition about which there is nothing to say."""
        self.status.kube_conditions = [entry for entry in self.status.kube_conditions if entry.type != type]

    def begin_again(self, reason: str, message: str) -> None:
        """The workload changes: earlier checks of it no longer hold."""
        self.condition(PODS_READY, None, reason, message)
        self.condition(MEMBERS_VERIFIED, None, reason, message)
        self.condition(READY, False, reason, message)
        self.condition(PROGRESSING, True, reason, message)

    # -------------------------------------------------------------- children

    def note(self, verb: str, kind: str, name: str) -> None:
        self.changes.append(f"{verb} {kind} {name}")

    async def ensure(self, child: Object, created: str = "Restored") -> bool:
        """Apply a desired child; True when that took a write. `created` is the reason of the event for a child that is
        missing after the creation: it was deleted, or it is needed only now.
        """
        kind, name = type(child), child.metadata.name
        live = await self.reads.get(kind, name)
        known = live is not None
        try:
            if not await self.ctx.apply(child):
                return False
        except Invalid:
            if live is None or not isinstance(child, Service):
                raise
            await self._replace_ports(child, live.metadata.uid)
        self.note("UPDATE" if known else "CREATE", kind.resource.kind, name)
        if self.status.phase != "Creating":
            change = "was updated" if known else "was restored" if created == "Restored" else "was created"
            self.ctx.event("Updated" if known else created, f"{kind.resource.kind} {name} {change}")
        self.wrote = True
        return True

    async def _replace_ports(self, service: Service, uid: str) -> None:
        """Another manager's ports have our names: an apply would leave them, a new list replaces them."""
        ports = [to_dict(port) for port in service.spec.ports]
        patch = MergePatch({"metadata": {"uid": uid}, "spec": {"ports": ports}})
        await self.ctx.client.patch(Service, service.metadata.name, patch, service.metadata.namespace)

    async def create(self, child: Object) -> None:
        """Create a child that is never updated."""
        set_controller_reference(self.ctx.obj, child)
        await self.ctx.client.create(child)
        self.note("CREATE", type(child).resource.kind, child.metadata.name)
        self.wrote = True

    async def delete(self, child: Object) -> None:
        """Delete a child as it was read; one that belongs to others is left alone."""
        kind, meta = type(child), child.metadata
        if not is_controlled_by(child, self.ctx.obj):
            return
        try:
            await self.ctx.client.delete(kind, meta.name, meta.namespace, propagation="Background", uid=meta.uid)
        except (NotFound, Conflict):
            return  # deleted already, or replaced by another object
        self.note("DELETE", kind.resource.kind, meta.name)
        self.wrote = True

    async def restart(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """Delete a pod; its StatefulSet creates it again."""
        try:
            await self.ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        except (NotFound, Conflict):
            return  # deleted already, or replaced by another pod
        self.tools.metrics.of(self.key).restarts += 1
        self.ctx.event(reason, message, type="Warning" if warning else "Normal")

    def at_size(self, replicas: int, listed: int, since: str = "") -> None:
        """Work towards this number of servers for now, with `listed` of them in the servers' lists `since` then."""
        self.now = replace(self.desired, replicas=replicas, listed=listed, listed_since=since)
