"""Every built-in resource has its strategy."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds import PLAIN, lookup
from konverge.apiserver.registry import Registry

REVIEWED = {"authentication.k8s.io", "authorization.k8s.io"}
"""Groups of requests that are answered and not stored."""


@pytest.mark.spec("S-03", "S-09")
def test_every_stored_kind_is_declared() -> None:
    missing = [
        f"{served.resource.group_resource}"
        for served in Registry.builtin()
        if "update" in served.verbs and lookup(served.resource.group, served.resource.kind) is PLAIN
    ]
    assert missing == []


@pytest.mark.spec("S-03")
def test_status_has_rules_where_it_is_served() -> None:
    wrong = [
        served.resource.group_resource
        for served in Registry.builtin()
        if ("status" in served.subresources) != (served.strategy.status is not None)
    ]
    assert wrong == []


@pytest.mark.spec("S-03")
@pytest.mark.parametrize("group", sorted(REVIEWED))
def test_kinds_without_declarations_are_plain(group: str) -> None:
    assert lookup(group, "Anything") is PLAIN
