"""Timers, daemons, tasks and hooks on the real kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from konverge.client import Client, MergePatch, NotFound, load_config
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.declared import Daemon, Every
from konverge.runtime.tasks.gone import Gone
from konverge.runtime.tasks.hooks import HookContext
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.real.clients.waiting import LIMIT
from tools.control_plane import ControlPlane

SPACE = "default"
LABEL = {"tasks": "real"}


class Work:
    """Counts in the object itself, by a timer and by a daemon."""

    def __init__(self) -> None:
        self.alive: set[str] = set()
        self.gone: list[str] = []
        self.calls = 0
        self.notes: list[str] = []

    async def tick(self, ctx: Context[ConfigMap]) -> None:
        self.calls += 1

    async def follow(self, ctx: DaemonContext[ConfigMap]) -> None:
        name = ctx.request.name
        self.alive.add(name)
        try:
            while True:
                data = (await ctx.changed()).data
                await ctx.apply(
                    ConfigMap(metadata=ObjectMeta(name=f"{name}-copy", namespace=SPACE), data=dict(data or {}))
                )
        finally:
            await asyncio.sleep(0.2)
            self.alive.discard(name)

    async def on_gone(self, gone: Gone) -> None:
        self.gone.append(gone.request.name)

    async def task(self, ctx: TaskContext) -> None:
        self.notes.append("task")
        await ctx.stop.wait()

    async def hook(self, ctx: HookContext) -> None:
        self.notes.append("hook")

    def manager(self, client: Client) -> Manager:
        controller = Controller(
            ConfigMap,
            name="real-tasks",
            label_selector="tasks=real",
            owns=[ConfigMap],
            timers=[Every(0.2, self.tick)],
            daemons=[Daemon(self.follow, holds_deletion=True)],
            finalizer="konverge.dev/real-tasks",
            on_gone=self.on_gone,
        )
        manager = Manager(client, name="real-tasks").add(controller).add_task(self.task, grace=5)
        manager.on_startup(self.hook)
        manager.on_shutdown(self.hook)
        return manager


@pytest.mark.spec("R-58", "R-59", "R-60")
async def test_work_besides_reconciles(real_server: ControlPlane) -> None:
    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        work = Work()
        async with asyncio.timeout(LIMIT), work.manager(client).running():
            await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=SPACE, labels=LABEL)))
            await until(lambda: work.alive == {"a"} and work.calls > 2)
            held = await client.get(ConfigMap, "a", SPACE)
            assert held.metadata.finalizers == ["konverge.dev/real-tasks"]
            await client.patch(ConfigMap, "a", MergePatch({"data": {"key": "value"}}), SPACE)
            copy = await made(client, "a-copy")
            assert copy.data == {"key": "value"}
            assert [owner.uid for owner in copy.metadata.owner_references] == [held.metadata.uid]
            await client.delete(ConfigMap, "a", SPACE)
            await until(lambda: work.gone == ["a"])
            assert not work.alive, "it was not gone before its daemon had ended"
        assert work.notes == ["hook", "task", "hook"]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.05)


async def made(client: Client, name: str) -> ConfigMap:
    while True:
        try:
            copy = await client.get(ConfigMap, name, SPACE)
            if copy.data:
                return copy
        except NotFound:
            pass
        await asyncio.sleep(0.05)
