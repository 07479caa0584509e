"""Our own operators under check: nothing is found in them above "low"."""

from __future__ import annotations

import pytest

from konverge.check.in_process import run_in_process
from konverge.check.model import Plan, Run, Setup, Subject, Task
from konverge.check.oracles import judge
from konverge.check.plans.crash import crashes
from konverge.check.reference import reference_of
from konverge.check.workload import basic
from konverge.operators.catalog import find

WEBAPP = find("webapp")


def run(plan: Plan, seed: int = 0) -> Run:
    setup = Setup(objects=tuple(WEBAPP.definitions()), nodes=2)
    steps = basic(WEBAPP.sample_objects()[:1])
    task = Task(subject=Subject(target="webapp"), setup=setup, steps=steps, plan=plan, seed=seed)
    return run_in_process(task, WEBAPP.controllers)


@pytest.mark.spec("K-30")
@pytest.mark.spec("K-31")
def test_no_crash_of_webapp_raises_an_alarm() -> None:
    reference = reference_of(run(Plan("reference")), run(Plan("reference"), seed=1))
    assert reference.varying == ()
    assert reference.unsteady == frozenset()
    plans = list(crashes(reference))
    assert len(plans) > 15
    for plan in plans[::3]:  # all of them, and ten seeds: the `long` ones
        crashed = run(plan, seed=2)
        assert not crashed.missed
        assert judge(crashed, reference) == []
