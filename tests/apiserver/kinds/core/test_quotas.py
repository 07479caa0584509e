"""ResourceQuotas."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, named

QUOTA = named(spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]})


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change(
            "ResourceQuota",
            QUOTA,
            {"spec": {"scopes": ["NotBestEffort"]}},
            ['spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable'],
        ),
    ],
)
def test_the_scopes_of_a_quota_are_kept(change: Change) -> None:
    change.check()
