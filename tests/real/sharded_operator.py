"""A replica for tests: stamps ConfigMaps, slowly, and notes the beginning and the end of every reconcile in a file.

`python -m tests.real.sharded_operator KUBECONFIG IDENTITY NOTES`
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from konverge import Context, Controller, Manager, Timing
from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.sharding import Sharding

STAMP = "stamp.konverge.dev/"
TIMING = Timing(lease_duration=8.0, renew_deadline=6.0, retry_period=0.5)


def main(kubeconfig: str, identity: str, notes: Path) -> None:
    os.environ["KUBECONFIG"] = kubeconfig
    written = notes.open("a", buffering=1)

    async def stamp(ctx: Context[ConfigMap]) -> None:
        obj = ctx.obj
        turn, key = obj.data.get("turn", ""), ctx.request.name
        written.write(f"{time.monotonic()} begin {key} {identity}\n")
        try:
            if turn and not any(name.startswith(f"{STAMP}{turn}-") for name in obj.metadata.annotations):
                await asyncio.sleep(0.02)  # time to be stopped between the look and the write
                patch = MergePatch({"metadata": {"annotations": {f"{STAMP}{turn}-{identity}": "yes"}}})
                await ctx.client.patch(ConfigMap, obj.metadata.name, patch, obj.metadata.namespace)
        finally:
            written.write(f"{time.monotonic()} end {key} {identity}\n")

    sharding = Sharding(name="stamps", identity=identity, timing=TIMING)
    manager = Manager(name="stamps", sharding=sharding)
    manager.add(Controller(ConfigMap, stamp, label_selector="stamped", workers=4)).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
