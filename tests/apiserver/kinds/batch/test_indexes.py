"""Lists of indexes: `0-1,3`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.kinds.batch.indexes import BadIndexes, count, overlap

COMPLETIONS = 30


def written(indexes: set[int]) -> str:
    """As a Job controller writes them: runs joined by a dash."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


SETS = st.sets(st.integers(0, COMPLETIONS - 1))


@pytest.mark.spec("S-09")
@given(first=SETS, second=SETS)
def test_lists_of_indexes_are_counted_and_compared(first: set[int], second: set[int]) -> None:
    assert count(written(first), COMPLETIONS) == len(first)
    assert overlap(written(first), written(second), COMPLETIONS) == min(first & second, default=None)


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("30", 'too large index: "30"'),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
    ],
)
def test_a_list_that_is_no_list_of_indexes_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadIndexes) as caught:
        count(text, COMPLETIONS)
    assert str(caught.value) == message
