"""The programs of the sharding benchmark: a replica of an operator, and the embedded server that it runs against.

The operator stamps every ConfigMap once for every value of `data.turn`. Each stamp is an annotation with the turn and
the replica in its name: two stamps of one turn are a double write, none is an object that was left out.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from konverge import Context, Controller, Manager
from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.sharding import Sharding

GROUP = "bench"
STAMP = "stamp.konverge.dev/"


def replica(identity: str, by: str) -> None:
    async def stamp(ctx: Context[ConfigMap]) -> None:
        obj = ctx.obj
        turn = obj.data.get("turn", "")
        if turn and not any(name.startswith(f"{STAMP}{turn}-") for name in obj.metadata.annotations):
            patch = MergePatch({"metadata": {"annotations": {f"{STAMP}{turn}-{identity}": "yes"}}})
            await ctx.client.patch(ConfigMap, obj.metadata.name, patch, obj.metadata.namespace)

    sharding = Sharding(
        name=GROUP,
        by="namespace" if by == "namespace" else "key",
        identity=identity,
    )
    manager = Manager(name="stamps", sharding=sharding, check_permissions=False)
    manager.dedicated = True
    manager.add(Controller(ConfigMap, stamp, label_selector="bench", workers=16)).run()


async def serve(kubeconfig: Path) -> None:
    from konverge.apiserver import ApiServer
    from konverge.apiserver.config import Config

    async with ApiServer(config=Config(feature_gates=frozenset({"ShardedListAndWatch"}))) as server:
        kubeconfig.write_text(json.dumps(server.kubeconfig(await server.listen())))
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        replica(sys.argv[2], sys.argv[3])
