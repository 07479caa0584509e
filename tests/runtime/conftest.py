"""An embedded API server, a client of it, and small kinds to reconcile, all in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta

SPACE = "default"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(server.transport, credentials=Static.bearer(server.token)) as client:
        yield client


def secret(name: str, **data: str) -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=SPACE), string_data=data)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=SPACE), data=data)
