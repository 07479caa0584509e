"""LimitRanges."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import World, named


@pytest.mark.spec("S-09")
def test_limits_of_containers_default_from_one_another() -> None:
    limit = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}
    obj = World().create("", "LimitRange", named(spec={"limits": [limit]})).obj
    assert obj["spec"]["limits"][0]["default"] == {"cpu": "2"}
    assert obj["spec"]["limits"][0]["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}
