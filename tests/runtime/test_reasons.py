"""Why a reconcile runs."""

from __future__ import annotations

import pytest

from konverge.runtime import (
    Changed,
    Retry,
)

pytestmark = pytest.mark.virtual


def test_reasons_name_the_changed_fields() -> None:
    assert str(Retry(2, "timed out")) == "retry 2 after: timed out"
    assert Changed.__doc__
