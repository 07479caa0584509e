"""The kubelet of every simulated node, as one controller: bound pods live by their machines (syncPod upstream).

A reconcile lets the pod's machine catch up with the time, writes what differs, and asks to be called again when the
machine has something to do. Deleted pods are stopped and then removed for good, as a kubelet does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Protocol

import msgspec

from konverge import clock
from konverge.cache import Change
from konverge.client import NotFound, StrategicPatch
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.observe.events import EventRecorder
from konverge.runtime import Context, Controller, Request, Result, Source, Watches
from konverge.runtime.context import Recorder
from konverge.runtime.predicates import ChangePredicate
from konverge.sim.kubelet import status
from konverge.sim.kubelet.admission import Refusal, Rooms
from konverge.sim.kubelet.behaviour import ADDRESS, RUNS, Behaviour, BehaviourError, Rule, behaviours
from konverge.sim.kubelet.machine import PodMachine, recover
from konverge.sim.kubelet.pace import NORMAL, Pace
from konverge.sim.kubelet.sessions import Scripted, Sessions
from konverge.sim.kubelet.supplies import Supplies
from konverge.sim.network import PODS, Addresses, in_pod_network


class Director(Protocol):
    """A simulated program that decides while it runs what becomes of its containers, in place of a script.

    `Kubelet.directors` lists those at work; `Kubelet.look_again` has one called between two events.
    """

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        """The scripts that the pod's containers follow from now on."""

    def lived(self, machine: PodMachine, address: str) -> None:
        """The pod has come so far; `address` is its IP."""

    def forgotten(self, uid: str) -> None:
        """The pod is gone."""


MANAGER = "kubelet"


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _Bound(msgspec.Struct, gc=False):
    spec: _Spec


_bound = msgspec.json.Decoder(_Bound)


class Runtime(Sessions, Protocol):
    """What runs containers as real processes."""

    def lives(self, pod: Pod) -> frozenset[str]:
        """The containers of a pod that are real processes."""

    def address(self, pod: Pod) -> str:
        """Of a pod in a pod network, by itself or on its node; empty for all others."""

    def obey(self, machine: PodMachine, pod_ip: str, host_ip: str) -> None:
        """Begin to carry out the orders of a pod's machine."""

    def forget(self, uid: str) -> None:
        """The pod is gone: whatever it left is ended and removed."""

    def controllers(self) -> list[Controller[Any]]:
        """What keeps the files of its pods up to date."""


class Kubelet:
    """The kubelets of all nodes. `lost` nodes do nothing until they are back."""

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        addresses: Addresses | None = None,
        events: bool = True,
        pace: Pace = NORMAL,
    ) -> None:
        self.rules = list(rules)
        self.pace = pace
        self.addresses = addresses or Addresses(PODS)
        self.lost: set[str] = set()
        self.machines: dict[str, PodMachine] = {}
        """By the uid of the pod."""
        self.runtime: Runtime | None = None
        self.directors: list[Director] = []
        self.scripted: Scripted | None = None
        """What answers exec in simulated containers."""
        self._scripts: dict[str, tuple[Any, dict[str, Behaviour]]] = {}
        self._waiting: dict[str, set[Request]] = {}
        self._supplies = Supplies()
        self._rooms = Rooms()
        self._changes: dict[str, asyncio.Event] = {}
        """By the uid of a pod whose log is followed: set when it has been reconciled."""
        self._again: asyncio.Queue[Request] = asyncio.Queue()
        self._epoch: float | None = None
        self._recorder: Recorder | None = None
        self._events = events

    def controllers(self) -> list[Controller[Any]]:
        return [
            Controller(
                Pod,
                self.reconcile,
                name="kubelet",
                when=ChangePredicate(self._concerns_us),
                watches=[Watches(Node, requests=self._waiting_for), *self._supplies.watches()],
                sources=[Source(name="looked at again", requests=self._looked_at_again)],
            ),
            *(self.runtime.controllers() if self.runtime is not None else ()),
        ]

    def record_with(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    # -------------------------------------------------------------- what is reconciled

    def _concerns_us(self, change: Change) -> bool:
        """Pods that have a node. No other part sees deletions, so state is dropped here."""
        if change.new is None:
            if change.old is not None:
                self._forget(change.old.uid)
                self._supplies.forget(Request(change.old.meta.namespace, change.old.meta.name))
            return False
        return bool(_bound.decode(change.new.raw).spec.node_name)

    def _forget(self, uid: str) -> None:
        machine = self.machines.pop(uid, None)
        if machine is not None:
            self._rooms.remove(machine.pod)
        self._scripts.pop(uid, None)
        self._notify(uid)
        self.addresses.release(uid)
        if self.runtime is not None:
            self.runtime.forget(uid)
        for director in self.directors:
            director.forgotten(uid)

    async def changed(self, uid: str) -> None:
        """Until something has happened to a pod."""
        await self._changes.setdefault(uid, asyncio.Event()).wait()

    def _notify(self, uid: str) -> None:
        change = self._changes.pop(uid, None)
        if change is not None:
            change.set()

    def _waiting_for(self, node: Node) -> Iterable[Request]:
        return () if node.metadata.name in self.lost else sorted(self._waiting.pop(node.metadata.name, ()))

    async def _looked_at_again(self) -> AsyncIterator[Request]:
        while True:
            yield await self._again.get()

    def recover_node(self, name: str) -> None:
        """A lost node is back: its pods go on, and what they missed happens now."""
        self.lost.discard(name)
        for request in sorted(self._waiting.pop(name, ())):
            self._again.put_nowait(request)
        self.look_again(lambda pod: pod.spec.node_name == name)

    def crash(self, name: str, namespace: str, container: str = "") -> list[str]:
        """The simulated containers of a pod that run (or one of them) end as if they were killed. Their names."""
        for machine in self.machines.values():
            meta = machine.pod.metadata
            if (meta.name, meta.namespace) == (name, namespace):
                self.look_at(machine.pod)
                return machine.crash(self.now(), container)
        return []

    def look_at(self, pod: Pod) -> None:
        """Something has happened to a pod's processes."""
        self._again.put_nowait(Request(pod.metadata.namespace, pod.metadata.name))

    def look_again(self, which: Any = lambda pod: True) -> None:
        """Reconcile pods although nothing has changed in the API: a rule has, or a node."""
        for machine in self.machines.values():
            if which(machine.pod):
                self.look_at(machine.pod)

    def now(self) -> float:
        """The nodes' own clock: it does not jump when the API server's does."""
        loop = asyncio.get_running_loop()
        if self._epoch is None:
            self._epoch = clock.now() - loop.time()
        return self._epoch + loop.time()

    # -------------------------------------------------------------- a reconcile

    async def reconcile(self, ctx: Context[Pod]) -> Result | None:
        pod = ctx.obj
        node_name = pod.spec.node_name or ""
        node = None if node_name in self.lost else await ctx.get(Node, node_name)
        if node is None:
            self._waiting.setdefault(node_name, set()).add(ctx.request)
            return None
        now = self.now()
        if refusal := self._refusal(pod, node):
            await self._reject(ctx, refusal, now)
            return None
        machine = self._machine(pod, now)
        if machine is None:
            return None
        if ctx.deleting or machine.finished:
            self._supplies.forget(ctx.request)
        else:
            machine.supply(await self._supplies.look(ctx, machine), now)
        if ctx.deleting:
            machine.terminate(now, float(pod.metadata.deletion_grace_period_seconds or 0))
        due = machine.advance(now)
        if machine.finished or machine.gone:
            self._rooms.remove(pod)
        self._carry_out(machine, _address(node))
        await self._write(ctx, machine, _address(node), now)  # also of one that goes: clients wait for its end
        if machine.gone or (ctx.deleting and machine.finished):
            await self._remove(ctx)
        self._record_events(machine)
        self._notify(pod.metadata.uid)
        return None if due == inf else Result(requeue_after=max(due - self.now(), 0.001))

    def _refusal(self, pod: Pod, node: Node) -> Refusal | None:
        """Why a pod that has not begun will not begin on its node."""
        is_new = pod.metadata.uid not in self.machines and pod.status.start_time is None
        if not is_new or pod.metadata.deletion_timestamp is not None:
            return None
        return self._rooms.refusal(pod, node)

    async def _reject(self, ctx: Context[Pod], refusal: Refusal, now: float) -> None:
        """Upstream: Kubelet.rejectPod."""
        reason, message = refusal
        state = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
        body = {"metadata": {"uid": ctx.obj.metadata.uid}, "status": {**state, "startTime": status.time(now)}}
        await self._patch(ctx, body)
        if self._recorder is not None and self._events:
            self._recorder.event(reason, message, about=ctx.obj, type="Warning")

    def _machine(self, pod: Pod, now: float) -> PodMachine | None:
        uid = pod.metadata.uid
        machine = self.machines.get(uid)
        if machine is None and pod.status.phase in ("Succeeded", "Failed") and not pod.metadata.deletion_timestamp:
            return None
        scripts = self._script(pod)
        for director in self.directors:
            scripts = director.direct(pod, scripts)
        if machine is None:
            live = self.runtime.lives(pod) if self.runtime is not None else ()
            machine = self.machines[uid] = recover(pod, scripts, now, live, self.pace)
            self._rooms.add(pod)
        else:
            added = self.runtime.lives(pod) if self.runtime is not None and pod.spec.ephemeral_containers else ()
            machine.update(pod, scripts, now, added)
        return machine

    def _script(self, pod: Pod) -> dict[str, Behaviour]:
        """The scripts of a pod's containers, read again when their annotation or images change."""
        uid = pod.metadata.uid
        basis = (tuple(sorted(pod.metadata.annotations.items())), tuple(self.rules))
        known = self._scripts.get(uid)
        if known is not None and known[0] == basis:
            return known[1]
        try:
            scripts = behaviours(pod, self.rules)
        except BehaviourError as error:
            if self._recorder is not None:
                self._recorder.event("InvalidBehaviour", str(error), about=pod, type="Warning")
            scripts = {}
        if self.runtime is not None:
            scripts |= dict.fromkeys(self.runtime.lives(pod), RUNS)
        self._scripts[uid] = (basis, scripts)
        return scripts

    def _carry_out(self, machine: PodMachine, host_ip: str) -> None:
        if self.runtime is not None and machine.live:
            self.runtime.obey(machine, self._pod_ip(machine.pod, host_ip), host_ip)
        for director in self.directors:
            director.lived(machine, self._pod_ip(machine.pod, host_ip))

    def _pod_ip(self, pod: Pod, host_ip: str) -> str:
        if self.runtime is not None and (own := self.runtime.address(pod)):
            return own
        if pod.spec.host_network and not in_pod_network(host_ip):  # this machine has no such address
            return host_ip
        known = pod.status.pod_ip or ""
        if self.runtime is not None and not known.startswith("127."):  # of a network that it has no more
            known = ""
        asked = pod.metadata.annotations.get(ADDRESS) or known
        if asked:
            self.addresses.keep(pod.metadata.uid, asked)
        return self.addresses.of(pod.metadata.uid)

    async def _write(self, ctx: Context[Pod], machine: PodMachine, host_ip: str, now: float) -> None:
        pod = ctx.obj
        body = status.patch(pod, status.wanted(machine, host_ip, self._pod_ip(pod, host_ip)), now)
        if body is not None:
            await self._patch(ctx, body)

    async def _patch(self, ctx: Context[Pod], body: dict[str, Any]) -> None:
        pod = ctx.obj
        try:
            await ctx.client.patch(
                Pod, pod.metadata.name, StrategicPatch(body), pod.metadata.namespace, subresource="status",
                field_manager=MANAGER,
            )  # fmt: skip
        except NotFound:
            self._forget(pod.metadata.uid)

    async def _remove(self, ctx: Context[Pod]) -> None:
        meta = ctx.obj.metadata
        if not meta.deletion_grace_period_seconds:
            return  # nothing but finalizers holds it, and those are others' business
        with suppress(NotFound):
            await ctx.client.delete(Pod, meta.name, meta.namespace, grace_period=0, uid=meta.uid)

    def _record_events(self, machine: PodMachine) -> None:
        notes, machine.notes = machine.notes, []
        if self._recorder is not None and self._events:
            for note in notes:
                self._recorder.event(note.reason, note.message, about=machine.pod, type=note.type)


def _address(node: Node) -> str:
    return next((address.address for address in node.status.addresses if address.type == "InternalIP"), "127.0.0.1")
