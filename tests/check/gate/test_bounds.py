"""A view is not held for ever: an operator that does not see a deletion may be busy until it does."""

from __future__ import annotations

import pytest

from konverge.check.model import Gap, Lag, Plan
from konverge.check.oracles import judge
from tests.check.gate.test_views import RECREATE, RESOURCE, moment
from tests.check.plans.test_known_bugs import owned
from tests.check.small import CONFIGS, THINGS, Api, Caches, Small, create, delete, reference, run


async def keep(api: Api, caches: Caches) -> None:
    """Recreates at once what was deleted: also what the garbage collector deletes since the Thing is gone."""
    for name, thing in caches[THINGS].items():
        if await api.get(CONFIGS, name) is None:
            await api.create(CONFIGS, owned(thing, {"data": {"size": str(thing["spec"]["size"])}}))


def small() -> Small:
    return Small(keep, (THINGS, CONFIGS))


@pytest.mark.spec("K-13")
def test_a_lag_ends_when_the_operator_fights_the_garbage_collector() -> None:
    steps = (create("create", size=1), delete())
    lagging = run(small, steps, Plan("stale", (Lag(RESOURCE, moment("DELETED")),)))
    made = [change for change in lagging.changes if change.moment.type == "ADDED" and change.writer == "operator"]
    assert len(made) > 3  # it did fight
    assert lagging.checkpoints[-1].rested
    assert not lagging.checkpoints[-1].blind
    assert judge(lagging, reference(small, steps)) == []


@pytest.mark.spec("K-14")
def test_a_gap_does_not_wait_for_a_rest_that_does_not_come() -> None:
    gap = Gap(RESOURCE, moment("DELETED"), moment("ADDED", occurrence=2))
    passed = run(small, RECREATE, Plan("gap", (gap,)))
    assert not passed.missed
    assert [checkpoint.blind for checkpoint in passed.checkpoints] == [False, True, False]
    assert judge(passed, reference(small, RECREATE)) == []
