"""The benchmark's operator on Konverge, written as the documentation recommends."""

from __future__ import annotations

import asyncio
import os
import time

import uvloop

from konverge.client import Client
from konverge.objects.custom.resource import CustomResource
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.objects.model import Model
from konverge.runtime import Context, Controller, Manager, Reconciler, Result

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


class BenchReconciler(Reconciler[Bench]):
    def __init__(self) -> None:
        self.count = 0

    async def reconcile(self, ctx: Context[Bench]) -> Result | None:
        bench = ctx.obj
        await ctx.apply(
            ConfigMap(
                metadata=ObjectMeta(name=bench.metadata.name, labels={"app": "bench"}),
                data={"payload": bench.spec.payload},
            )
        )
        bench.status.phase = "Ready"
        bench.status.observed_generation = bench.metadata.generation
        await ctx.save_status()
        self.count += 1
        if self.count == N:
            print(f"ALLSYNCED {N} {time.time() - START:.3f}s cpu {time.process_time():.2f}", flush=True)
        return None


async def main() -> None:
    async with Client.connect() as client:
        manager = Manager(client, name="bench")
        manager.add(Controller(Bench, BenchReconciler(), owns=[ConfigMap], namespaces=("bench",), workers=16))
        await manager.serve(asyncio.Event())


if __name__ == "__main__":
    uvloop.run(main())
