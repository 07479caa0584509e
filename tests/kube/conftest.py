"""An embedded API server with chosen controllers running, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from konverge import Client, Controller, Manager, Settings
from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Pod

Run = Callable[..., AbstractAsyncContextManager[Manager]]


@pytest.fixture
async def client(client: Client) -> AsyncIterator[Client]:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    await client.create(account)  # pods need one, and no controller here creates it
    yield client  # noqa: PT022 - async fixtures are generators here


@asynccontextmanager
async def running(client: Client, *modules: Any) -> AsyncIterator[Manager]:
    """The controllers of these modules run inside the block, with this client."""
    manager = Manager(client, name="kube", settings=Settings(base_delay=0.01))
    controllers: list[Controller[Any]] = [c for module in modules for c in module.controllers()]
    for controller in controllers:
        manager.add(controller)
    async with manager.running():
        yield manager


@pytest.fixture
def run(client: Client) -> Run:
    """`async with run(replicaset):` — the controllers of these modules run inside the block."""
    return partial(running, client)


async def make_ready(client: Client, pod: Pod, *, ready: bool = True, phase: str = "Running") -> None:
    """The status that a kubelet would report."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = MergePatch({"status": {"phase": phase, "conditions": [condition]}})
    await client.patch(Pod, pod.metadata.name, status, pod.metadata.namespace, subresource="status")


async def pods(client: Client, selector: str = "") -> list[Pod]:
    return (await client.list(Pod, "default", label_selector=selector)).items
