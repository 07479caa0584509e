"""`subresources.kubevirt.io/v1`, which `virtctl` asks: start, stop, restart, migrate, pause and unpause.

On a cluster this is an aggregated API; here the embedded server serves it itself. Consoles and other streams are left
out: there is no guest at the other end. Upstream: pkg/virt-api/rest/subresource.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from konverge.apiserver import ApiServer, status
from konverge.apiserver.http import respond
from konverge.apiserver.registry import Served, Subresource
from konverge.apiserver.request.call import Call
from konverge.client import ApiStatusError, Client, MergePatch
from konverge.objects.codec import from_json
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.kinds import (
    OVER,
    Instance,
    Obj,
    VirtualMachine,
    drop_condition,
    is_true,
    live,
    set_condition,
)
from konverge.sim.kubevirt.launcher import CREATED_BY
from konverge.sim.kubevirt.migrations import migrate
from konverge.sim.kubevirt.templates import strategy
from konverge.wire.message import Response

GROUP = "subresources.kubevirt.io"


class Asked(msgspec.Struct):
    """One call: who it is about, and what came with it."""

    client: Client
    namespace: str
    name: str
    body: Obj
    machine: VirtualMachine | None = None
    instance: Instance | None = None

    @property
    def alive(self) -> bool:
        return self.instance is not None and self.instance.status.get("phase") not in OVER

    @property
    def strategy(self) -> str:
        return strategy(self.machine.spec) if self.machine is not None else ""

    def refusal(self, why: str) -> status.ApiError:
        return status.conflict("kubevirt.io", "virtualmachine", self.name, why)

    async def power(self, on: bool) -> None:
        """The field that says whether it runs, in whichever form it is there."""
        old = self.machine is not None and "running" in self.machine.spec
        spec: Obj = {"running": on} if old else {"runStrategy": "Always" if on else "Halted"}
        await self.client.patch(VirtualMachine, self.name, MergePatch({"spec": spec}), self.namespace)

    async def request(self, *actions: str) -> None:
        """Leave it to the controller."""
        uid = self.instance.metadata.uid if self.instance is not None else ""
        made = [{"action": action, **({"uid": uid} if action == "Stop" else {})} for action in actions]
        patch = MergePatch({"status": {"stateChangeRequests": made}})
        await self.client.patch(VirtualMachine, self.name, patch, self.namespace, subresource="status")


Action = Callable[[Asked], Awaitable[None]]


# ------------------------------------------------------------------ machines


async def _start(asked: Asked) -> None:
    if asked.alive:
        raise asked.refusal("VM is already running")
    if asked.strategy in ("Always", "Once"):
        raise asked.refusal(f"{asked.strategy} does not support manual start requests")
    await (asked.power(True) if asked.strategy == "Halted" else asked.request("Start"))


async def _stop(asked: Asked) -> None:
    if not asked.alive and asked.strategy not in ("Always", "Once"):
        raise asked.refusal("VM is not running")
    if asked.strategy == "Halted" and "gracePeriod" not in asked.body:
        raise asked.refusal("Halted only supports manual stop requests with a shorter graceperiod")
    await (asked.power(False) if asked.strategy in ("Always", "Once") else asked.request("Stop"))
    if asked.body.get("gracePeriod") == 0:
        await _kill(asked)


async def _restart(asked: Asked) -> None:
    if asked.strategy in ("Halted", "Once"):
        raise asked.refusal(f"RunStategy {asked.strategy} does not support manual restart requests")
    if not asked.alive:
        raise asked.refusal("VM is not running")
    await asked.request("Stop", "Start")
    if asked.body.get("gracePeriodSeconds") == 0:
        await _kill(asked)


async def _kill(asked: Asked) -> None:
    """Without waiting for the guest."""
    if asked.instance is not None:
        mine = f"{CREATED_BY}={asked.instance.metadata.uid}"
        for pod in await asked.client.list(Pod, asked.namespace, label_selector=mine):
            await asked.client.delete(Pod, pod.metadata.name, asked.namespace, grace_period=0)


async def _migrate(asked: Asked) -> None:
    if not asked.alive:
        raise asked.refusal("VM is not running")
    await migrate(asked.client, asked.namespace, asked.name, generateName="kubevirt-migrate-vm-")


# ------------------------------------------------------------------ instances


async def _pause(asked: Asked, *, paused: bool) -> None:
    instance = asked.instance
    if instance is None or instance.status.get("phase") != "Running":
        raise asked.refusal("VM is not running")
    if is_true(instance.status, "Paused") == paused:
        raise asked.refusal("VMI is already paused" if paused else "VMI is not paused")
    if paused:
        set_condition(instance.status, "Paused", True, "PausedByUser", "VMI was paused by user")
    else:
        drop_condition(instance.status, "Paused")
    guard = {"resourceVersion": instance.metadata.resource_version}
    patch = MergePatch({"metadata": guard, "status": {"conditions": instance.status["conditions"]}})
    await asked.client.patch(Instance, asked.name, patch, asked.namespace)


_ACTIONS: dict[str, dict[str, Action]] = {
    "virtualmachines": {"start": _start, "stop": _stop, "restart": _restart, "migrate": _migrate},
    "virtualmachineinstances": {"pause": partial(_pause, paused=True), "unpause": partial(_pause, paused=False)},
}


# ------------------------------------------------------------------ serving


@contextmanager
def serving(server: ApiServer, client: Client) -> Iterator[None]:
    """Inside, this server has the group."""
    for kind in (VirtualMachine, Instance):
        plural = kind.resource.plural
        server.registry.add(_served(kind.resource.kind, plural))
        for name, action in _ACTIONS[plural].items():
            server.extensions.handlers[GROUP, plural, name] = partial(_answer, client, action)
    try:
        yield
    finally:
        for plural, actions in _ACTIONS.items():
            server.registry.remove(GROUP, "v1", plural)
            for name in actions:
                del server.extensions.handlers[GROUP, plural, name]


def _served(kind: str, plural: str) -> Served:
    names = list(_ACTIONS[plural])
    main = {"name": plural, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": []}
    below = [{**main, "name": f"{plural}/{name}", "singularName": "", "verbs": ["update"]} for name in names]
    return Served(
        resource=Resource(GROUP, "v1", kind, plural),
        singular=kind.lower(),
        subresources={name: Subresource(name=name, kind=kind, verbs=frozenset(("update",))) for name in names},
        entries=[main, *below],
    )


async def _answer(client: Client, action: Action, call: Call) -> Response:
    """Find both halves, do it, and say that it will happen."""
    info = call.info
    try:
        body = from_json(dict[str, Any], call.request.body or b"{}")
    except ValueError as error:
        raise status.bad_request(f"the body is not a JSON object: {error}") from None
    asked = Asked(client, info.namespace, info.name, body)
    asked.machine = await live(client, VirtualMachine, info.name, info.namespace)
    asked.instance = await live(client, Instance, info.name, info.namespace)
    if (asked.machine if info.plural == VirtualMachine.resource.plural else asked.instance) is None:
        raise status.not_found("kubevirt.io", info.plural, info.name)
    respond.settle_form(call)
    try:
        await action(asked)
    except ApiStatusError as error:  # the refusal of our own call is passed on to the caller
        raise status.ApiError(error.code, error.reason, error.message) from error
    return respond.answer(
        call, 202, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 202}
    )
