"""One round: the resource, its wish, and the requests of the steps, noted in the words of the document's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from konverge.client import Conflict, Invalid, MergePatch, NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.status import NacosStatus
from konverge.operators.nacos.steps.tools import Options, Tools
from konverge.operators.nacos.wish import Wish
from konverge.runtime import Context, Request, find_condition, is_true, set_condition

K = TypeVar("K", bound=Object)

PODS_READY = "PodsReady"
"""CheckKind was content."""
MEMBERS_VERIFIED = "MembersVerified"
"""CheckNacos was content."""
READY = "Ready"


class Round:
    """What the steps of one round share."""

    wish: Wish
    """What is wished for in the end. Read by PreCheck."""
    now: Wish
    """What is wished for at the moment: a cluster shrinks step by step."""

    def __init__(self, ctx: Context[AnyNacos], tools: Tools) -> None:
        self.ctx = ctx
        self.tools = tools
        self.requests: list[str] = []
        """What the steps asked of Kubernetes, as the document's tables say it."""
        self.asked: list[str] = []
        """The servers that were asked."""
        self.step = ""
        self.cannot_leave = ""
        """Why a server that is to go is still there, if the others do not let it."""

    @property
    def key(self) -> Request:
        return self.ctx.request

    @property
    def status(self) -> NacosStatus:
        return self.ctx.obj.status

    @property
    def options(self) -> Options:
        return self.tools.options

    @property
    def settled(self) -> bool:
        """Every stage was passed since the workload last changed."""
        return self.is_true(READY)

    @property
    def once_up(self) -> bool:
        """There has been a time when the servers were up: then there may be data to be careful with."""
        return bool(self.status.version)

    # -------------------------------------------------------------- conditions

    def condition(self, type: str, status: bool | None, reason: str, message: str = "") -> None:
        """Set one of the Kubernetes conditions; None is Unknown."""
        word = "Unknown" if status is None else "True" if status else "False"
        set_condition(
            self.status.kube_conditions,
            type,
            word,  # type: ignore[arg-type]
            reason,
            message,
            observed_generation=self.ctx.obj.metadata.generation,
        )

    def is_true(self, type: str) -> bool:
        return is_true(self.status.kube_conditions, type)

    def true_since(self, type: str) -> str:
        """Since when a condition is true; empty when it is not."""
        found = find_condition(self.status.kube_conditions, type)
        return (found.last_transition_time or "") if found is not None and found.status == "True" else ""

    def reason(self, type: str) -> str:
        """Of a condition, whatever its status; empty when there is none."""
        found = find_condition(self.status.kube_conditions, type)
        return found.reason if found is not None else ""

    def begin_again(self, reason: str, message: str) -> None:
        """The workload changes: what was found about it no longer holds."""
        self.condition(PODS_READY, None, reason, message)
        self.condition(MEMBERS_VERIFIED, None, reason, message)
        self.condition(READY, False, reason, message)
        self.condition("Progressing", True, reason, message)

    # -------------------------------------------------------------- requests

    def note(self, verb: str, kind: str, name: str) -> None:
        self.requests.append(f"{verb} {kind} {name}")

    async def get(self, kind: type[K], name: str) -> K | None:
        """Another object of the namespace, from the cache."""
        self.note("GET", kind.resource.kind, name)
        return await self.ctx.get(kind, name)

    async def ensure(self, child: Object, made: str = "Restored") -> bool:
        """A child as it is wished; True when that took a write. `made` is the reason of the event when it was not there
        though others are: somebody deleted it, or it comes later than they.
        """
        kind, name = type(child), child.metadata.name
        known = await self.ctx.get(kind, name) is not None
        try:
            if not await self.ctx.apply(child):
                return False
        except Invalid:
            if not known or not isinstance(child, Service):
                raise
            await self._replace_ports(child)
        self.note("UPDATE" if known else "CREATE", kind.resource.kind, name)
        if self.status.phase != "Creating":
            again = "is as wished again" if known or made == "Restored" else "was made"
            self.ctx.event("Updated" if known else made, f"{kind.resource.kind} {name} {again}")
        return True

    async def _replace_ports(self, service: Service) -> None:
        """Somebody else's ports stand beside ours under the same names: an apply leaves them, a new list does not."""
        patch = MergePatch({"spec": {"ports": [to_dict(port) for port in service.spec.ports]}})
        await self.ctx.client.patch(Service, service.metadata.name, patch, service.metadata.namespace)

    async def delete(self, kind: type[Object], name: str) -> bool:
        if not await self.ctx.delete(kind, name):
            return False
        self.note("DELETE", kind.resource.kind, name)
        return True

    async def restart(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """Delete a pod; its StatefulSet makes it anew."""
        try:
            await self.ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        except (NotFound, Conflict):
            return  # gone already, or another one by now
        self.note("DELETE", "Pod", pod.metadata.name)
        self.tools.numbers.of(self.key).restarts += 1
        self.ctx.event(reason, message, type="Warning" if warning else "Normal")

    def at_size(self, replicas: int, listed: int) -> None:
        """Work towards this number of servers for now, with so many of them in their lists."""
        self.now = replace(self.wish, replicas=replicas, listed=listed)
