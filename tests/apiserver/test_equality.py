from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.equality import equal


@pytest.mark.spec("S-85")
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        (True, True, True),
        (1, 1.0, True),
        (1, 2, False),
        (None, False, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ({"a": [{"b": 0}, 1]}, {"a": [{"b": 0}, 1]}, True),
        ({"a": 1, "b": 1}, {"b": 1, "a": True}, False),
        ([1, 1], [1, True], False),
        ([1], [1, 1], False),
        ({}, {"a": 1}, False),
        ("1", 1, False),
    ],
)
def test_true_is_no_number(a: Any, b: Any, expected: bool) -> None:
    assert equal(a, b) is expected
    assert equal(b, a) is expected
