"""The client's contract against the real kube-apiserver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from konverge.client import Client, Forbidden, Impersonation, Namespaced, Static, Unauthorized
from konverge.client.config import Config, TlsSettings, load_config
from konverge.objects import kinds
from konverge.objects.kinds.core_v1 import Namespace, Pod
from konverge.objects.meta import ObjectMeta
from tests.client import contract, contract_subresources
from tools.control_plane import ControlPlane

_numbers = count()


@pytest.fixture
async def client(real_server: ControlPlane) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"contract-{next(_numbers)}"
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    yield name  # noqa: PT022 - async fixtures are generators here


@pytest.mark.parametrize("check", contract_subresources.ALL, ids=lambda check: check.__name__)
async def test_the_client_keeps_its_contract(client: Client, namespace: str, check: contract.Check) -> None:
    await check(client, namespace)


def with_token(server: ControlPlane, token: str, impersonate: Impersonation | None = None) -> Client:
    return Client.connect(
        Config(
            server=server.url,
            credentials=Static.bearer(token),
            tls=TlsSettings(ca_file=str(server.ca_file)),
            impersonate=impersonate,
        )
    )


async def test_a_wrong_token_is_unauthorized(real_server: ControlPlane) -> None:
    async with with_token(real_server, "wrong") as client:
        with pytest.raises(Unauthorized, match="kubectl auth whoami"):
            await client.list(Pod)


async def test_a_forbidden_error_names_the_missing_rule(real_server: ControlPlane) -> None:
    jane = Impersonation(user="jane", groups=("system:authenticated",))
    async with with_token(real_server, real_server.token, jane) as client:
        with pytest.raises(Forbidden) as refused:
            await client.list(Pod, "default")
    assert "kubectl auth can-i list pods -n default --as=jane" in str(refused.value)
    assert '{apiGroups: [""], resources: ["pods"], verbs: ["list"]}' in str(refused.value)


async def test_a_client_can_impersonate_a_user_with_a_name_in_any_script(real_server: ControlPlane) -> None:
    extra = {"example.com/Project%": ["a b", "c"]}
    user = Impersonation(user="\u7528\u6237", groups=("system:masters",), uid="7", extra=extra)
    async with with_token(real_server, real_server.token, user) as client:
        review = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    seen = review["status"]["userInfo"]
    assert (seen["username"], seen["uid"]) == ("\u7528\u6237", "7")
    assert seen["extra"] == {"example.com/project%": ["a b", "c"]}


async def test_a_token_is_not_shown(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    issued = await space.request_token("default", seconds=600)
    assert issued.token not in repr(issued)


async def test_every_kind_that_is_served_has_a_class_with_its_names(client: Client) -> None:
    for served in await client.mapper.all():
        if "example.com" not in served.resource.group:
            class_ = kinds.lookup(served.resource.api_version, served.resource.kind)
            assert class_.resource == served.resource
