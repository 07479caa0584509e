"""Names and ordinals of a StatefulSet's pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.statefulset.identity import parent_and_ordinal

pytestmark = pytest.mark.spec("R-34")


@given(st.text(st.characters(codec="ascii"), max_size=8), st.integers(0, 10**6))
def test_a_pod_name_consists_of_parent_and_ordinal(parent: str, ordinal: int) -> None:
    assert parent_and_ordinal(f"{parent}-{ordinal}") == (parent, ordinal)
