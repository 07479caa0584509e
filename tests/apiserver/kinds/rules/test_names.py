"""Checks of an object's own name."""

from __future__ import annotations

from konverge.apiserver.kinds.rules.names import object_name
from konverge.objects.names import dns_label_errors


def test_a_prefix_for_generated_names_may_end_with_a_dash() -> None:
    check = object_name(dns_label_errors)
    assert check("web-", True) == []
    assert check("web-", False) != []
