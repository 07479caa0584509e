"""Peering: several copies, one of which works; the others stand by and take over.

`konverge run examples/10_peering.py` in two terminals; end the one that leads.
"""

from __future__ import annotations

from konverge import Context, Controller, LeaderElection, Manager
from konverge.objects.kinds.core_v1 import ConfigMap


async def stamp(ctx: Context[ConfigMap]) -> None:
    if ctx.obj.metadata.labels.get("stamp") == "wanted":
        ctx.obj.metadata.labels["stamp"] = "done"
        await ctx.save_metadata()


manager = Manager(name="stamps", leader_election=LeaderElection(name="stamps", namespace="default")).add(
    Controller(ConfigMap, stamp, label_selector="stamp")
)
