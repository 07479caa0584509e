"""How pods wait for the default account of their namespace."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
POD: Any = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.virtual
@pytest.mark.spec("S-13")
async def test_a_pod_waits_for_the_default_account_of_a_new_namespace() -> None:
    async with ApiServer() as server:
        api = Api(server)
        creation = asyncio.create_task(api.call("POST", PODS, POD), name="pod")
        await asyncio.sleep(0.5)
        assert not creation.done()
        await api.create("default", ACCOUNTS)
        assert (await creation)["spec"]["serviceAccountName"] == "default"


@pytest.mark.virtual
async def test_a_pod_without_an_account_is_refused_after_a_while() -> None:
    async with ApiServer() as server:
        refused = await Api(server).call("POST", PODS, POD, expect=403)
    why = 'error looking up service account default/default: serviceaccount "default" not found'
    assert refused["message"] == f'pods "p" is forbidden: {why}'
