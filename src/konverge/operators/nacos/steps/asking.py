"""What the servers of some pods say of their cluster: all are asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.server import PORT, Identity, NacosError, View
from konverge.operators.nacos.steps.pods import is_ready, why_not_ready
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.state import ReconcileState, Tools


class Server(NamedTuple):
    """The server of a pod that is ready."""

    pod: str
    address: str


async def ask_servers(state: ReconcileState, pods: Sequence[Pod]) -> list[View]:
    """A view for each pod; those that are not ready are views with the reason why they were not asked."""
    known = {pod.metadata.name: _unasked(pod) for pod in pods}
    asked = [Server(pod.metadata.name, pod.status.pod_ip or "") for pod in pods if known[pod.metadata.name] is None]
    state.identity = await identity_of(state)
    answers = {view.pod: view for view in await ask_all(state.tools, asked, state.identity)}
    return [view or answers[name] for name, view in known.items()]


def _unasked(pod: Pod) -> View | None:
    """The view of a pod whose server cannot be asked."""
    name, address = pod.metadata.name, pod.status.pod_ip or ""
    if is_ready(pod) and address:
        return None
    reason = why_not_ready(pod).removeprefix(name).lstrip(": ").removeprefix("is ")
    return View(pod=name, address=address, error=reason or "has no address yet")


async def ask_all(tools: Tools, servers: Sequence[Server], identity: Identity | None) -> list[View]:
    """What they say, in their order."""
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(_ask(tools, server, identity), name=f"ask {server.pod}") for server in servers]
    return [task.result() for task in asking]


async def _ask(tools: Tools, server: Server, identity: Identity | None) -> View:
    name, address = server
    try:
        async with tools.slots:
            members = await tools.servers.nodes(
                address, port=PORT, identity=identity, timeout=tools.options.call_timeout
            )
    except NacosError as error:
        return View(pod=name, address=address, error=str(error), forbidden=error.reason == "Forbidden")
    return View(pod=name, address=address, members=members)
