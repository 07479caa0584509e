"""Mistakes that people make, put into our operators: the checker finds them.

CI tries every fourth of them, `KONVERGE_CHECK_MUTANTS=all` and `python -m bench check` all.
"""

from __future__ import annotations

import os

import pytest

from bench._mutants import CPU, SAMPLES, attempt, mutants, quiet

FAST = [("webapp", "generation-first"), ("webapp", "no-owner"), ("webapp", "ready-without-looking")]

OTHERS = [
    (operator, item.name) for operator in SAMPLES for item in mutants(operator) if (operator, item.name) not in FAST
]
CHOSEN = OTHERS if os.environ.get("KONVERGE_CHECK_MUTANTS") == "all" else OTHERS[::4]


def found(operator: str, name: str) -> str:
    mutant = next(item for item in mutants(operator) if item.name == name)
    with quiet():
        result = attempt(operator, mutant)
    assert result.found is not None, f"{mutant.about}: not found by {result.plans} plans"
    assert result.cpu < 3 * CPU  # with a wide margin: machines differ
    return result.found.oracle


@pytest.mark.spec("K-44")
@pytest.mark.parametrize(("operator", "name", "oracle"), [(*FAST[0], ""), (*FAST[1], "orphans"), (*FAST[2], "status")])
def test_a_mutant_is_found(operator: str, name: str, oracle: str) -> None:
    assert oracle in found(operator, name)


@pytest.mark.long
@pytest.mark.limit(1200)
@pytest.mark.spec("K-44")
@pytest.mark.parametrize(("operator", "name"), CHOSEN)
def test_other_mutants_are_found(operator: str, name: str) -> None:
    found(operator, name)
