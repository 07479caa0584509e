"""Which formats count for which type."""

from __future__ import annotations

import pytest

from konverge.apiserver.go.strfmt import effective


@pytest.mark.spec("S-08")
def test_unknown_formats_are_ignored() -> None:
    assert not effective("string", "nonsense")
    assert effective("string", "date-time") == "date-time"
    assert not effective("integer", "date-time")
