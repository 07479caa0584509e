"""Fixtures of the API server's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with ApiServer() as server:
        yield Api(server)
