"""The Wukong operator as a program: what `bench scale` measures.

`python -m bench._machines KUBECONFIG COUNT SECONDS` runs the operator until every machine was reconciled and nothing is
queued, then measures itself for SECONDS, and prints the result as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench._usage import cpu, resident
from konverge.client import Client, load_config
from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong
from konverge.runtime import Context, Manager, Reconciler, Result

STEADY_AFTER = 30.0
"""Seconds after which nothing of the start is left."""


@dataclass(slots=True)
class Cost:
    """What the operator costs. CPU in seconds, memory in bytes."""

    ready: float = 0.0
    """Seconds that passed until every machine was found as it should be."""
    start: float = 0.0
    """CPU until then."""
    cpu: float = 0.0
    reconciles: int = 0
    empty: int = 0
    """Resident before the operator began: the interpreter and its modules."""
    resident: int = 0


class Seen(Reconciler[AnyWukong]):
    """The operator's reconciler, and which machines it has found to need nothing more."""

    def __init__(self, inner: Reconciler[AnyWukong], expected: int) -> None:
        self._inner = inner
        self._expected = expected
        self._settled: set[object] = set()
        self.count = 0
        self.all_settled = asyncio.Event()

    async def reconcile(self, ctx: Context[AnyWukong]) -> Result | None:
        result = await self._inner.reconcile(ctx)
        self.count += 1
        if result is None:
            self._settled.add(ctx.request)
            if len(self._settled) >= self._expected:
                self.all_settled.set()
        return result


def operator(client: Client, expected: int) -> tuple[Manager, Seen]:
    manager = Manager(client, name=OPERATOR.identity, check_permissions=False)
    first, *others = controllers(Options())
    assert isinstance(first.reconciler, Reconciler)
    seen = Seen(first.reconciler, expected)
    for controller in (replace(first, reconciler=seen), *others):
        manager.add(controller)
    return manager, seen


async def measure(kubeconfig: Path, count: int, seconds: float) -> Cost:
    cost = Cost()
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        began, at, cost.empty = cpu(), time.monotonic(), resident()
        manager, seen = operator(client, count)
        async with manager.running():
            await seen.all_settled.wait()
            cost.ready, cost.start = time.monotonic() - at, cpu() - began
            await asyncio.sleep(STEADY_AFTER)
            before = cpu(), seen.count
            await asyncio.sleep(seconds)
            cost.cpu, cost.reconciles = cpu() - before[0], seen.count - before[1]
            cost.resident = resident()
    return cost


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(measure(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
    print(json.dumps(asdict(result)))
