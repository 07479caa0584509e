"""`make check-operators`: nothing above "low" in Nacos and Wukong, whatever fails at any write, whatever users change.

Each part is a test of its own, so that a lane which runs out of time says how much of it is missing (see conftest.py).
"""

from __future__ import annotations

import os
from collections import Counter
from types import SimpleNamespace

import pytest

from konverge.check.campaign import Outcome
from konverge.check.model import Crash, Lag, Place, Plan, Refuse
from konverge.check.plans.errors import ANSWERS
from konverge.check.plans.writes import effective, place_of
from tests.check.operators.conftest import Performed, summary
from tests.check.operators.lane import FAULTS, OPERATIONS, SAMPLES, Lane, Part, at_every_write, chosen, number_of
from tests.check.operators.ours import Checked

LEAST = 1000
"""Operations of each operator."""
SLICE = os.environ.get("KONVERGE_SLICE", "")
"""CI has no time for all parts, and does one of each operator; which, the commit says."""


def id_of(part: Part) -> str:
    operator, sample, number, of = part
    return f"{operator}-{sample}-{number}-of-{of}"


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
    assert number_of(plans) >= LEAST
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


@pytest.mark.spec("K-94")
@pytest.mark.parametrize("parts", [OPERATIONS, FAULTS])
def test_a_slice_has_a_part_of_each_operator_and_the_slices_are_all_of_it(parts: dict[str, list[Part]]) -> None:
    slices = [chosen(parts, str(number)) for number in range(1000, 1000 + max(map(len, parts.values())))]
    assert all([operator for operator, *_ in one] == ["nacos", "wukong"] for one in slices)
    assert {part for one in slices for part in one} == set(chosen(parts, ""))


@pytest.mark.spec("K-94")
def test_the_end_says_how_much_was_run_and_how_much_was_skipped() -> None:
    def report(*properties: tuple[str, object]) -> SimpleNamespace:
        return SimpleNamespace(nodeid="tests/check/operators/test_lane.py::test_one[part]", user_properties=properties)

    def part(plans: int, cpu: float) -> SimpleNamespace:
        return report(("spec", "K-80"), ("plans: faults of nacos", plans), ("cpu: faults of nacos", cpu))

    other = SimpleNamespace(nodeid="tests/other.py::test_other", user_properties=())
    stats = {"passed": [part(10, 21.0), other], "failed": [part(5, 10.5)], "skipped": [report(), report(), other]}
    assert list(summary(stats)) == [
        "faults of nacos: 15 plans in 2 parts, 32 s of CPU time (2.1 s each)",
        "skipped, since the time of this run was used up: 2 parts",
    ]
    assert list(summary({"passed": [other]})) == []


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.takes(90)
@pytest.mark.spec("K-81")
@pytest.mark.parametrize("part", chosen(OPERATIONS, SLICE), ids=id_of)
def test_no_generated_operation_leads_to_a_finding(part: Part, performed: Performed) -> None:
    operator, sample, number, of = part
    outcome = Lane(operator, sample).check_operations(number, of)
    performed(f"operations of {operator}", outcome)
    assert findings(outcome) == []


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.takes(90)
@pytest.mark.spec("K-80")
@pytest.mark.parametrize("part", chosen(FAULTS, SLICE), ids=id_of)
def test_no_fault_at_any_write_leads_to_a_finding(part: Part, performed: Performed) -> None:
    operator, sample, number, of = part
    outcome = Lane(operator, sample).check_faults(number, of)
    performed(f"faults of {operator}", outcome)
    assert findings(outcome) == []
    seen: list[Plan] = [item.plan for item in outcome.performed if not item.missed]
    assert len(seen) > len(outcome.performed) * 3 // 4, "most faults come to pass"
