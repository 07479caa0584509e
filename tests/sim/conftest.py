"""A simulated cluster without the built-in controllers (they have tests of their own), and pods to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import ANNOTATION

SPACE = "default"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Cluster(controllers=False) as cluster:
        yield cluster


def pod(name: str, behaviour: str = "", **spec: Any) -> Pod:
    """A pod with one container `main`; `spec`, in the API's own form, adds or replaces."""
    metadata: dict[str, Any] = {"name": name, "namespace": SPACE, "labels": spec.pop("labels", {})}
    metadata["annotations"] = {**spec.pop("annotations", {}), **({ANNOTATION: behaviour} if behaviour else {})}
    if "owner" in spec:
        metadata["ownerReferences"] = [spec.pop("owner")]
    whole = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


def condition(result: Pod, name: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    return next((item.status, item.reason or "") for item in result.status.conditions if item.type == name)


async def shown(client: Client, name: str) -> str:
    """Phase, readiness and restarts of a pod, and why its container waits, in one line."""
    result = await client.get(Pod, name, SPACE)
    status = result.status.container_statuses[0]
    state = status.state
    why = ""
    if state is not None and state.waiting is not None:
        why = f" {state.waiting.reason}"
    elif state is not None and state.terminated is not None:
        why = f" {state.terminated.reason} {state.terminated.exit_code}"
    return f"{result.status.phase} {condition(result, 'Ready')[0]} {status.restart_count}{why}"
