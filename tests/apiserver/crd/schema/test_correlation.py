"""Equality of JSON values."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings

from konverge.apiserver.crd.schema.correlation import same
from tests.apiserver.crd.schema.test_coercion import VALUES


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(VALUES, VALUES)
def test_two_values_are_the_same_if_their_json_is(value: Any, other: Any) -> None:
    assert same(value, copy.deepcopy(value))
    assert same(value, other) == (json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True))
