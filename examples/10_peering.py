"""Peering: several copies that share the work; when one ends, the others take its objects over.

`konverge run examples/10_peering.py` in two terminals; end one of them. With `leader_election=LeaderElection(…)` in
place of `sharding=…` one copy works, and the others stand by.
"""

from __future__ import annotations

from konverge import Context, Controller, Manager, Sharding
from konverge.objects.kinds.core_v1 import ConfigMap


async def stamp(ctx: Context[ConfigMap]) -> None:
    if ctx.obj.metadata.labels.get("stamp") == "wanted":
        ctx.obj.metadata.labels["stamp"] = "done"
        await ctx.save_metadata()


manager = Manager(name="stamps", sharding=Sharding(name="stamps", namespace="default")).add(
    Controller(ConfigMap, stamp, label_selector="stamp")
)
