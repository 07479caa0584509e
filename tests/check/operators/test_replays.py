"""On virtual time the same task gives the same run, to the byte."""

from __future__ import annotations

import pytest

from konverge.check.model import Plan, encode
from konverge.check.plans.crash import crashes
from tests.check.operators.ours import Checked


def run_bytes(checked: Checked, plan: Plan) -> bytes:
    run = checked.run(plan)
    run.seconds = run.cpu = 0.0  # of this machine, and not of the run
    return encode(run)


@pytest.mark.spec("K-48")
@pytest.mark.parametrize(
    ("name", "times"),
    [("webapp", 3), *(pytest.param(name, 20, marks=pytest.mark.long) for name in ("webapp", "wukong"))],
)
def test_a_run_repeats_itself(name: str, times: int) -> None:
    checked = Checked(name)
    plan = list(crashes(checked.reference()))[1]
    first = run_bytes(checked, plan)
    assert all(run_bytes(checked, plan) == first for _ in range(times - 1))
