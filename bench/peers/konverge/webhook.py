"""The benchmark's validating webhook on Konverge. BENCH_CERTS has tls.crt and tls.key."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import uvloop

from konverge.objects.custom.resource import CustomResource
from konverge.objects.model import Model
from konverge.runtime.webhooks import Review, Webhooks, validating
from konverge.runtime.webhooks.server import Reviews, server_limits
from konverge.wire.certificate import Certificate
from konverge.wire.server import Server

MOST = 100


class BenchSpec(Model):
    payload: str = ""
    replicas: int = 0


class BenchStatus(Model):
    phase: str = ""
    observed_generation: int = 0


class Bench(CustomResource[BenchSpec, BenchStatus], group="bench.konverge.dev", version="v1", plural="benches"):
    """The workload's custom resource."""


@validating(Bench, path="/validate")
def check(review: Review[Bench]) -> None:
    if review.old is not None and review.obj.spec.replicas < review.old.spec.replicas:
        review.error("spec.replicas", "may not shrink", problem="Forbidden")
    if review.obj.spec.replicas > MOST:
        review.error("spec.replicas", f"must be at most {MOST}", value=review.obj.spec.replicas)


async def main() -> None:
    folder = Path(os.environ["BENCH_CERTS"])
    webhooks = Webhooks().add(check)
    server = Server(Reviews(webhooks).handle, limits=server_limits(webhooks))
    certificate = Certificate(folder / "tls.crt", folder / "tls.key")
    await server.start("127.0.0.1", int(os.environ["BENCH_PORT"]), ssl=certificate.context)
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    await end.wait()
    await server.close(grace=1.0)


uvloop.run(main())
