"""Metrics over TLS, to callers whom the API server authenticates and authorises: the real one, and the embedded one."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from konverge.client import Client, load_config
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, ServiceAccount
from konverge.objects.kinds.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from konverge.objects.meta import ObjectMeta
from konverge.observe.authorization import ACCESS_REVIEWS
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.endpoints import MetricsServer
from konverge.wire.message import Headers, Request
from konverge.wire.pool import ConnectionPool
from tests.real.clients.waiting import LIMIT

SPACE = "secure-metrics"


async def token_of(client: Client, name: str) -> str:
    """A token of a new service account."""
    await client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=SPACE)))
    return (await client.request_token(name, SPACE, seconds=600)).token


async def allow(client: Client, name: str) -> None:
    """Let a service account read the metrics, and nothing else."""
    rule = PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])
    await client.create(ClusterRole(metadata=ObjectMeta(name=f"{SPACE}-reader"), rules=[rule]))
    role = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=f"{SPACE}-reader")
    subject = Subject(kind="ServiceAccount", name=name, namespace=SPACE)
    await client.create(
        ClusterRoleBinding(metadata=ObjectMeta(name=f"{SPACE}-reader"), role_ref=role, subjects=[subject])
    )


async def until_allowed(client: Client, name: str) -> None:
    """The authorizer of the real server learns of a binding a moment after it was made."""
    review = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {
            "user": f"system:serviceaccount:{SPACE}:{name}",
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }
    async with asyncio.timeout(LIMIT):
        while not (await client.create(review, resource=ACCESS_REVIEWS))["status"]["allowed"]:
            pass


async def reconcile(ctx: Context[ConfigMap]) -> None: ...


@pytest.mark.spec("R-89", "R-92")
async def test_who_may_read_the_metrics(either_kubeconfig: Path) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    async with Client.connect(load_config(kubeconfig=either_kubeconfig)) as client:
        await client.create(Namespace(metadata=ObjectMeta(name=SPACE)))
        other, reader = await token_of(client, "other"), await token_of(client, "reader")
        await allow(client, "reader")
        await until_allowed(client, "reader")
        manager = Manager(client, metrics=MetricsServer(address=("127.0.0.1", 0)), debug=True)
        manager.add(Controller(ConfigMap, reconcile, namespaces=(SPACE,)))
        url = "https://127.0.0.1:{}"
        async with manager.running(), ConnectionPool(url.format(manager.metrics_port), tls=tls) as pool:

            async def status(token: str, path: str = "/metrics") -> int:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                return (await pool.send(Request("GET", path, Headers.of(headers)))).status

            assert await status("") == 401
            assert await status("not-a-token") == 401
            assert await status(other) == 403
            assert await status(reader) == 200
            assert await status(reader, "/debug/reconciles") == 403  # another path is another right
