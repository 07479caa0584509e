"""The benchmark's operator on Konverge.

It writes as WORKLOAD.md says: a create when the object is not there, an update when it differs. With BENCH_APPLY=1 it
does what the documentation recommends to operators instead, a server-side apply; for that the server works more.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import uvloop

from konverge.client import Client
from konverge.objects.custom.resource import CustomResource
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.objects.model import Model
from konverge.runtime import Context, Controller, Manager, Reconciler, Result, set_controller_reference

START = time.time()
N = int(os.environ.get("BENCH_N", "0"))


class BenchSpec(Model):
    payload: str = ""
    replicas: int = 0


class BenchStatus(Model):
    phase: str = ""
    observed_generation: int = 0


class Bench(CustomResource[BenchSpec, BenchStatus], group="bench.konverge.dev", version="v1", plural="benches"):
    """The workload's custom resource."""


Ensure = Callable[[Context[Bench], ConfigMap], Awaitable[object]]


async def create_or_update(ctx: Context[Bench], desired: ConfigMap) -> None:
    present = await ctx.get(ConfigMap, desired.metadata.name)
    if present is None:
        set_controller_reference(ctx.obj, desired)
        await ctx.client.create(desired)
    elif present.data != desired.data:
        present.data = desired.data
        await ctx.client.replace(present)


async def apply(ctx: Context[Bench], desired: ConfigMap) -> None:
    await ctx.apply(desired)


class BenchReconciler(Reconciler[Bench]):
    def __init__(self, ensure: Ensure) -> None:
        self.ensure = ensure
        self.count = 0

    async def reconcile(self, ctx: Context[Bench]) -> Result | None:
        bench = ctx.obj
        place = ObjectMeta(name=ctx.request.name, namespace=ctx.request.namespace, labels={"app": "bench"})
        await self.ensure(ctx, ConfigMap(metadata=place, data={"payload": bench.spec.payload}))
        bench.status.phase = "Ready"
        bench.status.observed_generation = bench.metadata.generation
        await ctx.save_status()
        self.count += 1
        if self.count == N:
            print(f"ALLSYNCED {N} {time.time() - START:.3f}s cpu {time.process_time():.2f}", flush=True)
        return None


async def main() -> None:
    reconciler = BenchReconciler(apply if os.environ.get("BENCH_APPLY") else create_or_update)
    async with Client.connect() as client:
        manager = Manager(client, name="bench")
        manager.add(Controller(Bench, reconciler, owns=[ConfigMap], namespaces=("bench",), workers=16))
        await manager.serve(asyncio.Event())


if __name__ == "__main__":
    uvloop.run(main())
