"""The simulated cluster: a whole Kubernetes in one process, on virtual time if wanted."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any, TypeVar

from konverge.sim.loop import VirtualLoop

T = TypeVar("T")

__all__ = ["Cluster", "Rule", "VirtualLoop", "run"]


def run(main: Coroutine[Any, Any, T], *, seed: int = 0) -> T:
    """Run a coroutine on virtual time.

    >>> async def nap() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run(nap())
    3600.0
    """
    with asyncio.Runner(loop_factory=functools.partial(VirtualLoop, seed)) as runner:
        return runner.run(main)


def __getattr__(name: str) -> Any:
    """The loop alone is wanted by many who need no cluster: the rest is imported when it is asked for."""
    if name == "Cluster":
        from konverge.sim.cluster import Cluster

        return Cluster
    if name == "Rule":
        from konverge.sim.kubelet.behaviour import Rule

        return Rule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
