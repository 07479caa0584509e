"""How endpoints are distributed over slices, for any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.endpoints.publish import arrange, identity
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointConditions

pytestmark = pytest.mark.spec("R-38")


SIZE = 4


numbers = st.integers(0, 30)


desired = st.dictionaries(numbers, st.booleans(), max_size=25)


def endpoint(number: int, ready: bool) -> Endpoint:
    return Endpoint(addresses=[f"10.0.0.{number}"], conditions=EndpointConditions(ready=ready))


@st.composite
def slices(draw: st.DrawFn) -> dict[str, list[Endpoint]]:
    present = list(draw(desired).items())
    return {
        f"s{start}": [endpoint(*item) for item in present[start : start + SIZE]]
        for start in range(0, len(present), SIZE)
    }


@given(slices(), desired)
def test_every_endpoint_is_in_exactly_one_slice(existing: dict[str, list[Endpoint]], wanted: dict[int, bool]) -> None:
    endpoints = [endpoint(*item) for item in wanted.items()]
    plan = arrange(existing, endpoints, SIZE)
    after = [*{**existing, **plan.changed}.values(), *plan.created]
    placed = [item for some in after for item in some]
    assert sorted(map(identity, placed)) == sorted(map(identity, endpoints))
    assert all(item in endpoints for item in placed)
    assert all(len(some) <= SIZE for some in after)
    assert all(plan.created)


@given(slices(), desired)
def test_arranging_again_changes_nothing(existing: dict[str, list[Endpoint]], wanted: dict[int, bool]) -> None:
    endpoints = [endpoint(*item) for item in wanted.items()]
    plan = arrange(existing, endpoints, SIZE)
    after = {name: some for name, some in {**existing, **plan.changed}.items() if some}
    after |= {f"n{number}": some for number, some in enumerate(plan.created)}
    again = arrange(after, endpoints, SIZE)
    assert (again.changed, again.created) == ({}, [])


@given(slices())
def test_one_more_endpoint_is_one_write(existing: dict[str, list[Endpoint]]) -> None:
    present = [item for some in existing.values() for item in some]
    plan = arrange(existing, [*present, endpoint(99, True)], SIZE)
    assert len(plan.changed) + len(plan.created) == 1
