"""What a patch asks for, compared with what was known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import receive
from konverge.runtime.story.differences import of_patch

pytestmark = pytest.mark.spec("R-87")

MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"


@pytest.mark.parametrize(
    ("content_type", "patch", "shown"),
    [
        (MERGE, {"list": [{"a": 1}, {"a": 3}]}, ["list[1].a 2 → 3"]),
        (MERGE, {"list": [{"a": 1}]}, ['list [{"a":1},{"a":2}] → [{"a":1}]']),
        (MERGE, {"list": None}, ["list removed"]),
        (MERGE, {"list": [{"a": 1}, {"a": 2}]}, []),
        (JSON, [{"op": "replace", "path": "/list/0/a", "value": 5}], ["list.0.a 1 → 5"]),
    ],
)
def test_lists_are_compared_by_place_where_they_are_as_long(content_type: str, patch: Any, shown: list[str]) -> None:
    body = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "list": [{"a": 1}, {"a": 2}]}
    _, record, _ = receive(json.dumps(body).encode())
    changes, more = of_patch("X", content_type, json.dumps(patch).encode(), record)
    assert ([str(change) for change in changes], more) == (shown, 0)
