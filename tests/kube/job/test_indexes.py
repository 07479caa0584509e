"""Sets of completion indexes and their text form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.job import job_pods

pytestmark = pytest.mark.spec("R-36")


def model_of(text: str) -> set[int]:
    """The grammar, read in the plainest way."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        ends = [int(end) for end in part.split("-")]
        numbers |= set(range(ends[0], ends[-1] + 1))
    return numbers


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_being_rendered_and_parsed(numbers: set[int]) -> None:
    text = job_pods.render_indexes(numbers)
    assert model_of(text) == numbers
    assert job_pods.parse_indexes(text, 100) == numbers
    assert job_pods.parse_indexes(text, 30) == {number for number in numbers if number < 30}
    parts = text.split(",") if text else []
    # As short as can be: three in a row are one part, two are never joined.
    assert all(int(last) - int(first) >= 2 for first, _, last in (p.partition("-") for p in parts) if last)
    lonely = [int(part) for part in parts if "-" not in part]
    assert not any({number, number + 1, number + 2} <= set(lonely) for number in lonely)
