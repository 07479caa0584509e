"""The order of versions."""

from __future__ import annotations

import pytest

from konverge.apiserver.crd.definition.naming import version_rank


@pytest.mark.spec("S-08")
def test_versions_are_in_the_order_of_their_maturity() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(sorted(ordered), key=version_rank) == ordered
