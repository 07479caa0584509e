"""Base64 as Go's encoding/base64 reads it (see test_recorded for the errors)."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.base64 import canonical_base64


@given(st.binary(max_size=40))
def test_base64_comes_back(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical_base64(text) == text == canonical_base64(data)
    assert canonical_base64("\n".join(text)) == text
