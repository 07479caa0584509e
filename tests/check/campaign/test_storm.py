"""An operator that never rests without any time passing: its step is given up, and that is a finding of its own."""

from __future__ import annotations

import pytest

from konverge import Context, Controller, Manager, ObjectMeta
from konverge.check.model import Plan, Subject, Task
from konverge.check.subjects import InThisProcess
from konverge.objects.kinds.core_v1 import ConfigMap
from tests.check.campaign.keeper import Kept
from tests.check.campaign.test_campaign import SETUP, STEPS


async def count(ctx: Context[Kept]) -> None:
    number = 0
    while True:
        number += 1
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.request.name), data={"n": str(number)}))


@pytest.mark.spec("K-50")
def test_a_loop_of_writes_that_takes_no_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.check.run.MOST_CHANGES", 50)
    manager = Manager(name="counter").add(Controller(Kept, count, owns=[ConfigMap]))
    run = InThisProcess(manager).run(Task(subject=Subject(), setup=SETUP, steps=STEPS, plan=Plan("reference")))
    assert [(checkpoint.step, checkpoint.rested) for checkpoint in run.checkpoints] == [("create", False)]
    assert 50 < len(run.changes) < 3000
