"""`make check-operators`: nothing above "low" in Nacos and Wukong, whatever fails at any write, whatever users change.

Each part is a test of its own, so that a lane which runs out of time says how much of it is missing.
"""

from __future__ import annotations

from collections import Counter

import pytest

from konverge.check.campaign import Outcome
from konverge.check.model import Crash, Lag, Place, Plan, Refuse
from konverge.check.plans.errors import ANSWERS
from konverge.check.plans.writes import effective, place_of
from tests.check.operators.lane import SAMPLES, Lane, at_every_write, number_of
from tests.check.operators.ours import Checked

OPERATIONS = 1000
"""Of each operator."""
PARTS = {"nacos": 8, "wukong": 3}
"""Of the operations of one sample: each takes less than a minute of CPU time."""
FAULTY = {"nacos": ("mysql", 12), "wukong": ("smallest", 6)}
"""The sample whose every write is disturbed, and in how many parts."""

PARTS_OF_OPERATIONS = [
    pytest.param(operator, sample, part, id=f"{operator}-{sample}-{part}")
    for operator, samples in SAMPLES.items()
    for sample in samples
    for part in range(PARTS[operator])
]
PARTS_OF_FAULTS = [(operator, part) for operator, (_, parts) in FAULTY.items() for part in range(parts)]


def findings(outcome: Outcome) -> list[str]:
    """Those above "low", of a check that left nothing out."""
    assert (outcome.left_out, outcome.interrupted) == ({}, False)
    assert [item.problem for item in outcome.performed if item.problem] == []
    return [
        f"{item.alarm.severity} {item.alarm.oracle}: {item.sentence}"
        for item in outcome.findings
        if item.alarm.severity != "low"
    ]


@pytest.mark.spec("K-81")
@pytest.mark.parametrize("operator", SAMPLES)
def test_there_are_a_thousand_operations_and_no_two_runs_are_the_same(operator: str) -> None:
    plans = [plan for sample in SAMPLES[operator] for plan in Lane(operator, sample).operations()]
    assert number_of(plans) >= OPERATIONS
    assert len(set(map(repr, plans))) == len(plans)
    assert {plan.pattern for plan in plans} == {"input", "recovery"}


@pytest.mark.spec("K-80")
def test_every_write_meets_three_kinds_of_faults() -> None:
    reference = Checked("webapp").reference()
    kinds: dict[Place, Counter[str]] = {}
    plans = list(at_every_write(reference))
    for exchange, plan in ((exchange, plan) for exchange in effective(reference) for plan in plans):
        (item,) = plan.perturbations
        if isinstance(item, Crash | Refuse) and item.place == place_of(exchange):
            kinds.setdefault(item.place, Counter())[type(item).__name__] += 1
    assert len(kinds) == len(list(effective(reference))) > 10
    assert all(count == {"Crash": 1, "Refuse": len(ANSWERS[place.verb])} for place, count in kinds.items())
    assert sum(isinstance(plan.perturbations[0], Lag) for plan in plans) == len(kinds)


@pytest.mark.spec("K-80")
def test_a_part_of_the_faults_is_a_check_as_any_other() -> None:
    """The first of many parts, on the smallest sample: what the lane does with all of them."""
    outcome = Lane("wukong", "smallest").check_faults(0, 60)
    assert findings(outcome) == []
    assert len(outcome.performed) > 2
    assert outcome.base.setup.account, "with the permissions that it has on a cluster"
    assert [item.plan for item in outcome.performed if item.missed] == []


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.spec("K-81")
@pytest.mark.parametrize(("operator", "sample", "part"), PARTS_OF_OPERATIONS)
def test_no_generated_operation_leads_to_a_finding(operator: str, sample: str, part: int) -> None:
    outcome = Lane(operator, sample).check_operations(part, PARTS[operator])
    assert findings(outcome) == []


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.spec("K-80")
@pytest.mark.parametrize(("operator", "part"), PARTS_OF_FAULTS)
def test_no_fault_at_any_write_leads_to_a_finding(operator: str, part: int) -> None:
    sample, parts = FAULTY[operator]
    outcome = Lane(operator, sample).check_faults(part, parts)
    assert findings(outcome) == []
    seen: list[Plan] = [item.plan for item in outcome.performed if not item.missed]
    assert len(seen) > len(outcome.performed) * 3 // 4, "most faults come to pass"
