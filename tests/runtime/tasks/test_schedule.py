"""The heap of times, against a plain dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.runtime.tasks.schedule import STALE, Schedule

pytestmark = pytest.mark.spec("R-59")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 20)),
        st.tuples(st.just("remove"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("take"), st.just(0), st.integers(0, 20)),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_is_a_dictionary_of_times(steps: list[tuple[str, int, int]]) -> None:
    schedule: Schedule[int] = Schedule()
    model: dict[int, int] = {}
    for what, key, time in steps:
        if what == "put":
            schedule.put(key, time)
            model[key] = time
        elif what == "remove":
            schedule.remove(key)
            model.pop(key, None)
        else:
            due = {key for key, at in model.items() if at <= time}
            taken = schedule.take_due(time)
            assert set(taken) == due
            assert [model[key] for key in taken] == sorted(model[key] for key in taken)
            assert len(taken) == len(due)
            model = {key: at for key, at in model.items() if key not in due}
        assert len(schedule) == len(model)
        assert schedule.next_due == min(model.values(), default=None)


def test_what_was_replaced_or_removed_takes_no_room_for_long() -> None:
    schedule: Schedule[int] = Schedule()
    for number in range(10_000):
        schedule.put(number, 1e9 + number)
        schedule.put(number, 2e9)
        if number >= 10:
            schedule.remove(number)
    assert len(schedule) == 10
    assert len(schedule._heap) <= STALE + 2 * 10 + 1
