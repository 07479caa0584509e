"""A kubelet that tests command: it binds pods, makes them run and become ready, and removes deleted ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from konverge import Context, Controller
from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now

Says = Callable[[Pod], str]
"""What becomes of a pod: "Ready", "Running" (never ready), "Pending", "Succeeded", "Failed" or "Failed 42"."""


def always_ready(pod: Pod) -> str:
    return "Pending" if (pod.spec.containers[0].image or "").startswith("broken") else "Ready"


class Kubelet:
    """`async with run(statefulset, Kubelet()):`; `log` has what happened to pods, in order."""

    def __init__(self, says: Says = always_ready, *, takes: float = 0.1) -> None:
        self.says = says
        self.takes = takes
        self.log: list[str] = []

    def controllers(self) -> list[Controller[Any]]:
        return [Controller(Pod, self._reconcile, name="kubelet", workers=50)]

    async def _reconcile(self, ctx: Context[Pod]) -> None:
        pod = ctx.obj
        if pod.metadata.deletion_timestamp is not None:
            await asyncio.sleep(self.takes)
            self.log.append(f"gone {pod.metadata.name}")
            if pod.spec.restart_policy == "Never" and pod.status.phase == "Running":
                await _become(ctx.client, pod, "Failed 137", [])
            await ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, grace_period=0)
            return
        if not pod.spec.node_name and self.says(pod) != "Pending":
            self.log.append(f"bound {pod.metadata.name}")
            await ctx.client.bind_pod(pod.metadata.name, _target_node(pod), pod.metadata.namespace)
            await asyncio.sleep(self.takes)
        await _become(ctx.client, pod, self.says(pod), self.log)


async def _become(client: Client, pod: Pod, wanted: str, log: list[str]) -> None:
    wanted, _, code = wanted.partition(" ")
    phase = "Running" if wanted == "Ready" else wanted
    ready = "True" if wanted == "Ready" else "False"
    present = next((c.status for c in pod.status.conditions if c.type == "Ready"), None)
    if (
        wanted == "Pending"
        or (pod.status.phase == phase and present == ready)
        or pod.status.phase in ("Succeeded", "Failed")
    ):
        return
    log.append(f"{wanted.lower()} {pod.metadata.name}")
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": now()}
    status: dict[str, Any] = {"phase": phase, "conditions": [condition]}
    if wanted == "Failed":
        status["containerStatuses"] = [_ended(pod, int(code or 1))]
    await client.patch(
        Pod, pod.metadata.name, MergePatch({"status": status}), pod.metadata.namespace, subresource="status"
    )


def _ended(pod: Pod, code: int) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": now()}}
    return {"name": pod.spec.containers[0].name, "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
            "state": state}  # fmt: skip


def _target_node(pod: Pod) -> str:
    """The node that the affinity of a DaemonSet's pod names."""
    node = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    terms = required.node_selector_terms if required else []
    return next((field.values[0] for term in terms for field in term.match_fields), "node-1")
