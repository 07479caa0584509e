"""Expressions whose value, error and cost were recorded from the CEL environment of Kubernetes 1.37."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver.cel.cost import estimate
from konverge.apiserver.cel.program import compile_expression
from tests.apiserver.cel.show import ENVIRONMENT, outcome

RECORDED = Path(__file__).parent / "recorded" / "expressions.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_text().splitlines()]


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["expression"][:50])
def test_an_expression_has_the_recorded_outcome(row: dict[str, Any]) -> None:
    wanted = {key: row[key] for key in ("value", "error", "compile") if key in row}
    assert outcome(row["expression"]) == wanted


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("row", [row for row in ROWS if "cost" in row], ids=lambda row: row["expression"][:50])
def test_the_estimated_cost_is_that_of_upstream(row: dict[str, Any]) -> None:
    program = compile_expression(row["expression"], ENVIRONMENT)
    cost = estimate(program.checked.tree, lambda path: None)
    assert [cost.low, cost.high] == row["cost"]
