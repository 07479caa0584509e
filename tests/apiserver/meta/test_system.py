"""The metadata that the server sets and keeps, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.meta import system
from konverge.apiserver.status import ApiError


@given(st.text(min_size=0, max_size=100))
def test_generated_names_keep_their_base_and_fit(base: str) -> None:
    name = system.generate_name(base)
    assert name.startswith(base[:58])
    assert len(name) == min(len(base), 58) + 5


def test_an_update_keeps_what_the_server_owns() -> None:
    old = {"uid": "u", "creationTimestamp": "t", "deletionTimestamp": "d", "deletionGracePeriodSeconds": 0}
    metadata: dict[str, Any] = {"creationTimestamp": "other", "deletionTimestamp": "other"}
    system.keep(metadata, old)
    assert metadata == old


def test_the_namespace_of_a_body_must_match_the_path() -> None:
    metadata: dict[str, Any] = {}
    system.match_namespace(metadata, "a")
    assert metadata == {"namespace": "a"}
    system.match_namespace(metadata, "")
    assert metadata == {}
    with pytest.raises(ApiError):
        system.match_namespace({"namespace": "b"}, "a")


@pytest.mark.parametrize(("with_status", "counts"), [(True, False), (False, True)])
def test_generation_counts_the_status_only_without_a_subresource(with_status: bool, counts: bool) -> None:
    old = {"spec": {"a": 1}, "status": {"b": 1}, "metadata": {"x": 1}}
    new = {"spec": {"a": 1}, "status": {"b": 2}, "metadata": {"x": 2}}
    assert system.changed_beyond_metadata(new, old, status_too=not with_status, custom=False) is counts


@pytest.mark.spec("S-85")
def test_generation_counts_other_types_of_values_in_custom_resources() -> None:
    new, old = {"spec": {"a": True}}, {"spec": {"a": 1}}
    assert system.changed_beyond_metadata(new, old, status_too=False, custom=True)
    assert not system.changed_beyond_metadata(old, old, status_too=False, custom=True)
