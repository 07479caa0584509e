"""An operator that writes the time again and again is at rest; one that changes anything else is not."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from .small import THINGS, Api, Caches, Small, create, run


def restless(field: str) -> Small:
    """Writes this field of the status every half minute."""
    numbers = count()

    async def reconcile(api: Api, caches: Caches) -> None:
        for name in caches[THINGS]:
            await asyncio.sleep(30)
            await api.patch(THINGS, f"{name}/status", {"status": {field: str(next(numbers))}})

    return Small(reconcile)


@pytest.mark.spec("K-06")
def test_times_that_go_on_are_rest_and_are_counted() -> None:
    checkpoint = run(lambda: restless("lastSeenTime"), [create("create")]).checkpoints[0]
    assert checkpoint.rested
    assert checkpoint.noise.keys() == {"demo.dev/things default/a"}
    assert checkpoint.noise["demo.dev/things default/a"] >= 1


@pytest.mark.spec("K-06")
def test_anything_else_that_goes_on_is_not() -> None:
    checkpoint = run(lambda: restless("round"), [create("create")]).checkpoints[0]
    assert not checkpoint.rested
