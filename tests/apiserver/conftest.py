"""Fixtures of the API server's tests."""

from __future__ import annotations

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api


@pytest.fixture
def api(server: ApiServer) -> Api:
    return Api(server)
