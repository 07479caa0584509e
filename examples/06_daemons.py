"""Daemons: a task for each object, started with it, ended with it, started again when its spec changes.

The object is not gone before its daemon has ended. `konverge run examples/06_daemons.py`
"""

from __future__ import annotations

import asyncio

from konverge import Controller, CustomResource, Daemon, DaemonContext, Manager, Model
from konverge.objects import NoStatus


class FeedSpec(Model):
    url: str


class Feed(CustomResource[FeedSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A feed that is followed for as long as the object is there."""


seen: list[str] = []


async def follow(ctx: DaemonContext[Feed]) -> None:
    while True:
        seen.append(ctx.obj.spec.url)
        await asyncio.sleep(5)


daemon = Daemon(follow, restart_on_change=True, holds_deletion=True)
manager = Manager(name="feeds").add(Controller(Feed, daemons=[daemon]))
