"""An API server that reaches servers behind it on loopback addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.aggregation.extension import CONFIG
from tests.apiserver.api import Api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with ApiServer(config=CONFIG) as server:
        yield Api(server)
