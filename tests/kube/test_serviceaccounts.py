"""The objects that every namespace has, and tokens in secrets."""

from __future__ import annotations

import asyncio
import base64

import pytest

from konverge import ApiServer, ObjectMeta
from konverge.client import Client, MergePatch, NotFound, Static
from konverge.kube import serviceaccounts
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret, ServiceAccount
from tests.kube.conftest import Run

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-43")]


class WithAuthority:
    """The module with a certificate."""

    @staticmethod
    def controllers() -> object:
        return serviceaccounts.controllers(root_ca="PEM\n")


async def new_namespace(client: Client, name: str = "shop") -> None:
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await asyncio.sleep(1)


async def test_a_namespace_gets_its_service_account_and_the_root_certificate(client: Client, run: Run) -> None:
    async with run(WithAuthority):
        await new_namespace(client)
        account = await client.get(ServiceAccount, "default", "shop")
        authority = await client.get(ConfigMap, "kube-root-ca.crt", "shop")
        assert authority.data == {"ca.crt": "PEM\n"}
        assert authority.metadata.annotations[serviceaccounts.DESCRIPTION].startswith("Contains a CA bundle")
        await client.delete(ServiceAccount, "default", "shop")
        await client.delete(ConfigMap, "kube-root-ca.crt", "shop")
        await asyncio.sleep(1)
        assert (await client.get(ServiceAccount, "default", "shop")).metadata.uid != account.metadata.uid
        assert (await client.get(ConfigMap, "kube-root-ca.crt", "shop")).data == {"ca.crt": "PEM\n"}


async def test_a_changed_root_certificate_is_repaired(client: Client, run: Run) -> None:
    async with run(WithAuthority):
        await new_namespace(client)
        change = MergePatch({"data": {"ca.crt": "other", "more": "x"}, "metadata": {"annotations": None}})
        await client.patch(ConfigMap, "kube-root-ca.crt", change, "shop")
        await asyncio.sleep(1)
        config_map = await client.get(ConfigMap, "kube-root-ca.crt", "shop")
        assert config_map.data == {"ca.crt": "PEM\n"}
        assert serviceaccounts.DESCRIPTION in config_map.metadata.annotations


async def test_nothing_is_created_in_a_namespace_that_is_being_deleted(client: Client, run: Run) -> None:
    async with run(WithAuthority):
        await new_namespace(client)
        await client.delete(Namespace, "shop")
        await client.delete(ServiceAccount, "default", "shop")
        await asyncio.sleep(60)
        with pytest.raises(NotFound):
            await client.get(ServiceAccount, "default", "shop")


async def test_a_token_secret_is_filled_and_deleted_with_its_account(
    server: ApiServer, client: Client, run: Run
) -> None:
    async with run(WithAuthority):
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
        meta = ObjectMeta(name="key", namespace="default", annotations={serviceaccounts.ACCOUNT_NAME: "robot"})
        await client.create(Secret(metadata=meta, type=serviceaccounts.TOKEN))
        await asyncio.sleep(5)
        secret = await client.get(Secret, "key", "default")
        account = await client.get(ServiceAccount, "robot", "default")
        assert secret.metadata.annotations[serviceaccounts.ACCOUNT_UID] == account.metadata.uid
        assert base64.b64decode(secret.data["namespace"]) == b"default"
        assert base64.b64decode(secret.data["ca.crt"]) == b"PEM\n"
        token = base64.b64decode(secret.data["token"]).decode()
        async with Client(server.transport, credentials=Static.bearer(token)) as robot:
            who = await robot.create(
                {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
            )
        assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        await client.delete(ServiceAccount, "robot", "default")
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(Secret, "key", "default")


async def test_a_secret_of_a_deleted_account_of_the_same_name_is_deleted(client: Client, run: Run) -> None:
    await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    notes = {serviceaccounts.ACCOUNT_NAME: "robot", serviceaccounts.ACCOUNT_UID: "6b1e4f0c-0000-4000-8000-000000000000"}
    meta = ObjectMeta(name="key", namespace="default", annotations=notes)
    await client.create(Secret(metadata=meta, type=serviceaccounts.TOKEN))
    async with run(WithAuthority):
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(Secret, "key", "default")
