"""What the API server finds invalid is not carried out in any order: how a custom resource came to it says little."""

from __future__ import annotations

import pytest

from konverge.check.model import Exchange, Run
from konverge.check.oracles.effect import effect
from konverge.check.oracles.path_dependence import path_dependence
from tests.check.inputs.test_oracles import GOOD, changed, child, created_again, run_of, said, step, there_and_back

OLD, NEW = (child("apps/statefulsets", spec={"template": {"image": image}}) for image in "ab")


def answered(run: Run, *answers: tuple[float, int], name: str = "corner") -> Run:
    """With updates of the operator by their time and status."""
    run.exchanges = [
        Exchange(
            number=number, incarnation=1, verb="update", resource="apps/statefulsets", namespace="default", name=name,
            status=status, began=time, revision=0,
        )
        for number, (time, status) in enumerate(answers)
    ]  # fmt: skip
    return run


@pytest.mark.spec("K-99")
@pytest.mark.parametrize(
    ("answers", "severity"),
    [
        ([], "high"),
        ([(0.5, 422)], "medium"),
        ([(2.5, 422)], "medium"),
        ([(0.4, 422), (0.5, 200)], "high"),
        ([(0.5, 409)], "high"),
        ([(1.5, 422)], "high"),
    ],
    ids=["none", "of the change", "of the new one", "tried again", "a conflict", "of the deletion"],
)
def test_what_is_invalid_makes_what_differs_medium(answers: list[tuple[float, int]], severity: str) -> None:
    run = answered(created_again(OLD, NEW), *answers)
    assert [item[0] for item in said(path_dependence, run)] == [severity]


@pytest.mark.spec("K-99")
def test_what_cannot_be_taken_back_is_as_bad_as_it_was() -> None:
    assert [item[0] for item in said(path_dependence, answered(there_and_back([OLD], [NEW]), (1.5, 422)))] == ["high"]


@pytest.mark.spec("K-99")
def test_a_change_that_the_operator_tries_in_vain_is_a_note() -> None:
    assert [item[0] for item in said(effect, answered(changed("Labels"), (0.5, 422)))] == ["low"]
    assert [item[0] for item in said(effect, answered(changed("Labels"), (0.5, 200)))] == ["medium"]


@pytest.mark.spec("K-99")
@pytest.mark.parametrize(("value", "severity"), [(3, "low"), ({"zone": "a"}, "medium"), (["a"], "medium")])
def test_one_value_that_is_taken_away_may_be_the_default(value: object, severity: str) -> None:
    run = run_of(
        (step("create", {**GOOD, "size": value}), {}, [OLD]),
        (step("remove", GOOD, "spec.size", core="Replicas"), {}, [OLD]),
    )
    assert [item[0] for item in said(effect, run)] == [severity]
