"""Resuming: after a restart every object is reconciled once, and `ctx.reasons` says that it was listed and not changed.

`konverge run examples/04_resuming.py`
"""

from __future__ import annotations

import logging

from konverge import Context, Controller, CustomResource, Manager, Model
from konverge.objects import NoStatus
from konverge.runtime import Changed

log = logging.getLogger("pumps")
connections: dict[str, str] = {}
"""What this process holds open for each object; gone with the process."""


class PumpSpec(Model):
    address: str


class Pump(CustomResource[PumpSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A pump with a connection that the operator keeps open."""


async def connect(ctx: Context[Pump]) -> None:
    resumed = all(isinstance(reason, Changed) and reason.change.initial for reason in ctx.reasons)
    if connections.get(ctx.obj.metadata.uid) != ctx.obj.spec.address:
        connections[ctx.obj.metadata.uid] = ctx.obj.spec.address
        log.info("%s %s", "resumed" if resumed else "connected", ctx.obj.metadata.name)


manager = Manager(name="pumps").add(Controller(Pump, connect))
