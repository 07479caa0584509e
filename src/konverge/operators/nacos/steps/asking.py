"""What the servers of some pods say of their cluster: all are asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.server import PORT, Identity, NacosError, View
from konverge.operators.nacos.steps.pods import is_ready, why_not_ready
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.state import ReconcileState


async def ask_servers(state: ReconcileState, pods: Sequence[Pod]) -> list[View]:
    """A view for each pod; those that are not ready are views with the reason why they were not asked."""
    identity = await identity_of(state)
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(_ask(state, pod, identity), name=f"ask {pod.metadata.name}") for pod in pods]
    return [task.result() for task in asking]


async def _ask(state: ReconcileState, pod: Pod, identity: Identity | None) -> View:
    name, address = pod.metadata.name, pod.status.pod_ip or ""
    if not is_ready(pod) or not address:
        reason = why_not_ready(pod).removeprefix(name).lstrip(": ").removeprefix("is ")
        return View(pod=name, address=address, error=reason or "has no address yet")
    try:
        async with state.tools.slots:
            members = await state.tools.servers.nodes(
                address, port=PORT, identity=identity, timeout=state.options.call_timeout
            )
    except NacosError as error:
        return View(pod=name, address=address, error=str(error), forbidden=error.reason == "Forbidden")
    return View(pod=name, address=address, members=members)
