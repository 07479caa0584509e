"""Quantities as numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.kinds.rules import quantities


@given(st.integers(min_value=0, max_value=10**9), st.sampled_from(["", "m", "k", "Ki", "M", "Gi"]))
def test_amounts_are_exact(number: int, suffix: str) -> None:
    scales = {"": 10**9, "m": 10**6, "k": 10**12, "Ki": 1024 * 10**9, "M": 10**15, "Gi": 2**30 * 10**9}
    assert quantities.amount(f"{number}{suffix}") == number * scales[suffix]


def test_sums_keep_their_unit() -> None:
    assert quantities.added({"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"}) == {"cpu": "1500m", "memory": "1Gi"}
    assert quantities.largest({"cpu": "500m"}, {"cpu": "1"}) == {"cpu": "1"}
    assert quantities.rounded_to_milli("1500u") == "2m"
