"""Places in an object, as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.check.inputs.paths import Path, parsed, text

keys = st.text(st.characters(exclude_characters=".[]"), min_size=1, max_size=5)
places = st.tuples(keys, st.lists(keys | st.integers(0, 12), max_size=4)).map(lambda place: (place[0], *place[1]))


@pytest.mark.spec("K-144")
@given(places)
def test_what_is_shown_is_read_back(place: Path) -> None:
    assert parsed(text(place)) == place


@pytest.mark.spec("K-144")
def test_keys_in_brackets_as_the_api_server_shows_them_are_read_too() -> None:
    assert parsed("spec.labels[app.kubernetes.io/name]") == ("spec", "labels", "app.kubernetes.io/name")
    assert parsed("spec.nodes[10].ports[http][0]") == ("spec", "nodes", 10, "ports", "http", 0)
    assert parsed("spec.pools.0") == ("spec", "pools", "0")
