"""The objects that every namespace has, and tokens in secrets."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from konverge import ApiServer, ObjectMeta
from konverge.client import Client, MergePatch, NotFound, Static
from konverge.kube import serviceaccounts
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret, ServiceAccount
from tests.kube.conftest import Run, running
from tests.kube.interposed import Interposed
from tests.kube.triggers import Triggers

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


async def test_nothing_is_tried_in_a_namespace_that_is_being_deleted(client: Client) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="shop")))
    await client.delete(Namespace, "shop")
    interposed = Interposed(client)
    async with running(interposed, WithAuthority):
        await asyncio.sleep(5)
    assert not [call for call in interposed.calls if call.writes and "/namespaces/shop/" in call.target()]


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


async def fill(client: Client, run: Run, module: Any = WithAuthority, **secret: Any) -> Secret:
    """A secret of the account `robot`, after the controller has seen it."""
    await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    meta = ObjectMeta(name="key", namespace="default", annotations={serviceaccounts.ACCOUNT_NAME: "robot"})
    kind = secret.pop("type", serviceaccounts.TOKEN)
    await client.create(Secret(metadata=meta, type=kind, **secret))
    async with run(module):
        await asyncio.sleep(5)
        return await client.get(Secret, "key", "default")


async def test_a_token_that_is_there_is_kept(client: Client, run: Run) -> None:
    secret = await fill(client, run, data={"token": "dG9rZW4=", "mine": "eA=="})
    assert secret.data["token"] == "dG9rZW4="
    assert set(secret.data) == {"token", "mine", "namespace", "ca.crt"}
    interposed = Interposed(client)
    async with running(interposed, WithAuthority):
        await asyncio.sleep(5)
    assert ("patch", "key") not in interposed.writes()
    assert await client.get(Secret, "key", "default") == secret


async def test_an_old_certificate_is_replaced_and_without_one_none_is_written(client: Client, run: Run) -> None:
    secret = await fill(client, run, data={"ca.crt": "b2xk", "namespace": "b3RoZXI="})
    assert base64.b64decode(secret.data["ca.crt"]) == b"PEM\n"
    assert secret.data["namespace"] == "b3RoZXI="


async def test_without_a_certificate_none_is_written(client: Client, run: Run) -> None:
    secret = await fill(client, run, serviceaccounts)
    assert set(secret.data) == {"token", "namespace"}


async def test_secrets_of_other_types_are_left_alone(client: Client, run: Run) -> None:
    assert (await fill(client, run, type="Opaque")).data == {}


async def test_a_secret_that_is_being_deleted_is_left_alone(client: Client, run: Run) -> None:
    await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    meta = ObjectMeta(name="key", namespace="default", annotations={serviceaccounts.ACCOUNT_NAME: "robot"})
    meta.finalizers = ["tests.konverge.dev/kept"]
    await client.create(Secret(metadata=meta, type=serviceaccounts.TOKEN))
    await client.delete(Secret, "key", "default")
    async with run(WithAuthority):
        await asyncio.sleep(5)
        assert (await client.get(Secret, "key", "default")).data == {}


async def test_the_description_alone_is_repaired_and_a_right_map_is_not_written(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, WithAuthority):
        await asyncio.sleep(1)
        before = len(interposed.writes())
        labels = MergePatch({"metadata": {"labels": {"a": "b"}}})
        await client.patch(ConfigMap, "kube-root-ca.crt", labels, "default")
        await asyncio.sleep(1)
        assert interposed.writes()[before:] == []
        await client.patch(ConfigMap, "kube-root-ca.crt", MergePatch({"metadata": {"annotations": None}}), "default")
        await asyncio.sleep(1)
        assert interposed.writes()[before:] == [("patch", "kube-root-ca.crt")]
        live = await client.get(ConfigMap, "kube-root-ca.crt", "default")
        assert serviceaccounts.DESCRIPTION in live.metadata.annotations


def test_which_changes_concern_whom() -> None:
    accounts, authority, tokens = serviceaccounts.controllers()
    account = ServiceAccount(metadata=ObjectMeta(name="robot", namespace="shop"))
    assert Triggers(accounts).of(account, None) == {"serviceaccount shop"}
    assert Triggers(accounts).of(None, account) == set()
    assert [watch.field_selector for watch in accounts.watched] == ["metadata.name=default"]
    config_map = ConfigMap(metadata=ObjectMeta(name="kube-root-ca.crt", namespace="shop"))
    assert Triggers(authority).of(config_map, config_map) == {"root-ca-certificate-publisher shop"}
    assert [watch.field_selector for watch in authority.watched] == ["metadata.name=kube-root-ca.crt"]
    assert tokens.field_selector == f"type={serviceaccounts.TOKEN}"

    def secret(name: str, owner: str, namespace: str = "shop") -> Secret:
        notes = {serviceaccounts.ACCOUNT_NAME: owner}
        return Secret(metadata=ObjectMeta(name=name, namespace=namespace, annotations=notes))

    cached = [secret("a", "robot"), secret("b", "other"), secret("c", "robot", "elsewhere")]
    assert Triggers(tokens).of(account, None, cached=cached) == {"serviceaccount-token shop/a"}
