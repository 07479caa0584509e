"""How seats are divided, lent and asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.flow_control.retry_after import MOST, RetryAfter
from konverge.apiserver.flow_control.shares import Demand, Share, divided, lent, share

pytestmark = pytest.mark.spec("S-51")


def test_the_seats_of_the_suggested_levels_are_those_of_the_real_server() -> None:
    assert share(600, 20, 245, 50, None).nominal == 49
    assert share(600, 5, 245, 0, None) == Share(13, 13, 613)
    assert share(600, 40, 245, 25, 10) == Share(98, 73, 108)
    assert share(600, 0, 245, 0, 0) == Share(0, 0, 0)


def test_who_needs_nothing_lends_what_it_may() -> None:
    shares = [Share(100, 10, 700), Share(100, 100, 700), Share(100, 50, 100)]
    seats = lent(shares, [(0, 0.0), (0, 0.0), (300, 300.0)])
    assert seats[2] == 100, "it may not borrow"
    seats = lent([*shares[:2], Share(100, 50, 700)], [(0, 0.0), (0, 0.0), (300, 300.0)])
    assert seats == [10, 100, 190]


def test_who_needs_its_share_has_it() -> None:
    shares = [Share(100, 0, 700), Share(100, 0, 700)]
    assert lent(shares, [(100, 100.0), (500, 500.0)]) == [100, 100]


classes = st.lists(
    st.tuples(st.floats(0, 50), st.floats(0.01, 200), st.floats(0, 300)).map(
        lambda one: (one[0], max(one[0], one[1]), one[0] + one[2])
    ),
    min_size=1,
    max_size=8,
)


@given(st.floats(0, 1000), classes)
def test_a_number_is_divided_within_bounds(total: float, wanted: list[tuple[float, float, float]]) -> None:
    given_out = divided(total, wanted)
    assert all(least <= got <= most for got, (least, _, most) in zip(given_out, wanted, strict=True))
    lowest, highest = sum(one[0] for one in wanted), sum(one[2] for one in wanted)
    assert sum(given_out) == pytest.approx(min(max(total, lowest), highest), abs=1e-3)
    inside = [got / want for got, (least, want, most) in zip(given_out, wanted, strict=True) if least < got < most]
    assert not inside or max(inside) == pytest.approx(min(inside), rel=1e-3)


def test_demand_rises_at_once_and_falls_slowly() -> None:
    time = [0.0]
    demand = Demand(lambda: time[0])
    demand.set(10)
    time[0] = 10.0
    assert demand.read() == (10, 10.0)
    demand.set(0)
    time[0] = 20.0
    highest, smooth = demand.read()
    assert highest == 10, "it was so high when the time began"
    assert 9.0 < smooth < 10.0
    time[0] = 30.0
    assert demand.read()[0] == 0


def test_a_short_peak_is_not_the_demand() -> None:
    time = [0.0]
    demand = Demand(lambda: time[0])
    demand.set(100)
    time[0] = 0.1
    demand.set(0)
    time[0] = 10.0
    highest, smooth = demand.read()
    assert highest == 100
    assert smooth == pytest.approx(1 + (100 * 1.0 - 1) ** 0.5, rel=0.01)  # mean and deviation


def test_the_more_are_refused_the_later_they_may_come_again() -> None:
    retry = RetryAfter()
    seen = []
    for second in range(1, 130):
        for _ in range(200):
            retry.note(second)
        seen.append(retry.seconds)
    assert seen[:2] == [1, 2]
    assert seen == sorted(seen)
    assert seen[-1] == MOST
    for second in range(200, 400, 40):
        retry.note(second)
    assert retry.seconds == MOST - 5
