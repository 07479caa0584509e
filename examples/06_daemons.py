"""Daemons: a task for each object, started with it, ended with it, started again when its spec changes.

The finalizer that `cleanup` brings makes sure that the task has ended before the object is gone.
`konverge run examples/06_daemons.py`
"""

from __future__ import annotations

import asyncio

from konverge import Context, Controller, CustomResource, Manager, Model, Reconciler
from konverge.objects import NoStatus


class FeedSpec(Model):
    url: str


class Feed(CustomResource[FeedSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A feed that is followed for as long as the object is there."""


class FeedReconciler(Reconciler[Feed]):
    def __init__(self) -> None:
        self.running: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self.seen: list[str] = []

    async def reconcile(self, ctx: Context[Feed]) -> None:
        uid, url = ctx.obj.metadata.uid, ctx.obj.spec.url
        if uid in self.running and self.running[uid][0] == url and not self.running[uid][1].done():
            return
        await self._end(uid)
        self.running[uid] = url, asyncio.create_task(self._follow(url), name=f"feed {ctx.request}")

    async def cleanup(self, ctx: Context[Feed]) -> None:
        await self._end(ctx.obj.metadata.uid)

    async def _follow(self, url: str) -> None:
        while True:
            self.seen.append(url)
            await asyncio.sleep(5)

    async def _end(self, uid: str) -> None:
        if uid in self.running:
            _, task = self.running.pop(uid)
            task.cancel()
            await asyncio.wait([task])


reconciler = FeedReconciler()
manager = Manager(name="feeds").add(Controller(Feed, reconciler))
