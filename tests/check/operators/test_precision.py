"""Our own operators under check: nothing is found in them above "low"."""

from __future__ import annotations

import os

import pytest

from konverge.check.model import Alarm, Edit
from konverge.check.oracles import judge
from konverge.check.plans import all_plans
from konverge.check.plans.crash import crashes
from konverge.check.plans.edits import edits
from tests.check.operators.ours import Checked

SEEDS = int(os.environ.get("KONVERGE_CHECK_SEEDS", "1"))
"""Each takes half a minute of CPU time and more; `KONVERGE_CHECK_SEEDS=10` goes through all plans of all operators."""


def above_low(alarms: list[Alarm]) -> list[str]:
    return [f"{alarm.severity} {alarm.oracle}: {alarm.sentence}" for alarm in alarms if alarm.severity != "low"]


@pytest.mark.spec("K-30")
@pytest.mark.spec("K-31")
def test_no_crash_of_webapp_raises_an_alarm() -> None:
    webapp = Checked("webapp")
    reference = webapp.reference()
    assert reference.varying == ()
    assert reference.unsteady == frozenset()
    assert judge(reference.run, reference) == []
    plans = list(crashes(reference))
    assert len(plans) > 15
    for plan in plans[::3]:  # all of them, and ten seeds: the `long` ones
        crashed = webapp.run(plan, seed=2)
        assert not crashed.missed
        assert judge(crashed, reference) == []


@pytest.mark.spec("K-43")
def test_what_others_take_off_a_wukong_comes_back() -> None:
    wukong = Checked("wukong")
    reference = wukong.reference()
    own = [
        plan
        for plan in edits(reference)
        for item in plan.perturbations
        if isinstance(item, Edit) and item.ref.resource == "vm.novasphere.dev/wukongs"
    ]
    assert [next(iter(item.patch or {})) for plan in own for item in plan.perturbations if isinstance(item, Edit)] == [
        "metadata",
        "status",
    ]
    for plan in own:
        assert above_low(judge(wukong.run(plan), reference)) == []


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.spec("K-44")
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", ["webapp", "nacos", "wukong"])
def test_nothing_above_low_is_found_in_our_operators(name: str, seed: int) -> None:
    checked = Checked(name, seed=2 * seed)
    reference = checked.reference()
    assert above_low(judge(reference.run, reference)) == []
    plans = all_plans(reference, seed=seed)
    assert len(plans) > 30
    for plan in plans[seed::10]:  # ten seeds together are all plans
        assert above_low(judge(checked.run(plan), reference)) == [], plan
