"""The client's contract on the embedded server."""

from __future__ import annotations

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Impersonation, Namespaced, Static
from konverge.objects.kinds.core_v1 import Namespace
from konverge.objects.meta import ObjectMeta
from tests.client import contract, contract_subresources


@pytest.mark.virtual
@pytest.mark.parametrize("check", contract_subresources.ALL, ids=lambda check: check.__name__)
async def test_contract(check: contract.Check) -> None:
    async with ApiServer() as server:
        client = Client(server.transport, credentials=Static.bearer(server.token))
        await client.create(Namespace(metadata=ObjectMeta(name="contract")))
        await check(client, "contract")


async def test_an_impersonated_user_may_have_a_name_in_any_script() -> None:
    acting = Impersonation(user="\u7528\u6237", groups=("system:masters",), extra={"example.com/Project%": ["a b"]})
    async with ApiServer() as server:
        client = Client(server.transport, credentials=Static.bearer(server.token), impersonate=acting)
        review = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    user = review["status"]["userInfo"]
    assert (user["username"], user["extra"]) == ("\u7528\u6237", {"example.com/project%": ["a b"]})


@pytest.mark.virtual
async def test_wrappers_compose_in_any_order() -> None:
    async with ApiServer() as server:
        plain = Client(server.transport, credentials=Static.bearer(server.token))
        await plain.create(Namespace(metadata=ObjectMeta(name="contract")))
        for make in contract_subresources.every_order_of_wrappers("contract"):
            await contract_subresources.writes_nothing(make(plain), Namespaced(plain, "contract"))
