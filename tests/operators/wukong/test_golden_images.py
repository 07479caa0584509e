"""Disks from a golden image of another namespace: CDI asks what the operator may do there, as it does of anybody."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Client, Static
from konverge.client.config import Impersonation
from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.runtime.rbac import permissions, rules_for
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.world import SPACE, World, make_classes, operating

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-12")]

ACCOUNT = "system:serviceaccount:vms:wukong-operator"
IMAGES = "images"
RBAC = "rbac.authorization.k8s.io"


async def allow(client: Client, rules: list[Any], namespace: str = "") -> None:
    kind, meta = ("Role", {"namespace": namespace}) if namespace else ("ClusterRole", {})
    named = {"apiVersion": f"{RBAC}/v1", "metadata": {**meta, "name": "wukong"}}
    await client.create({**named, "kind": kind, "rules": rules})
    who = [{"kind": "User", "name": ACCOUNT, "apiGroup": RBAC}]
    role = {"kind": kind, "name": "wukong", "apiGroup": RBAC}
    await client.create({**named, "kind": f"{kind}Binding", "subjects": who, "roleRef": role})


async def golden(client: Client) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": IMAGES}})
    meta, size = {"name": "noble", "namespace": IMAGES}, {"requests": {"storage": "5Gi"}}
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": size}
    await client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    source = {"source": {"pvc": meta}}
    await client.create(
        {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": meta, "spec": source}
    )


async def test_an_image_of_another_namespace_is_copied_once_that_is_granted_there() -> None:
    disk = {"name": "system", "size": "10Gi", "storageClassName": "fast"}
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await golden(cluster.client)
        await allow(cluster.client, rules_for(permissions(controllers(Options()))))
        who, secret = Impersonation(user=ACCOUNT), Static.bearer(cluster.server.token)
        async with (
            Client(cluster.server.transport, credentials=secret, impersonate=who) as client,
            operating(client, check_permissions=True),
        ):
            w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
            await w.create(disks=[{**disk, "source": {"dataSource": {"name": "noble", "namespace": IMAGES}}}])
            told = (await w.phase("Error")).status.message
            assert f"User {ACCOUNT} has insufficient permissions in clone source namespace {IMAGES}" in told
            granted = {"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}
            await allow(cluster.client, [granted], IMAGES)
            await w.phase("Running")
        claim = await cluster.client.get("persistentvolumeclaims", "web-system", SPACE)
        assert claim["metadata"]["annotations"]["cdi.kubevirt.io/dataSourceNamespace"] == IMAGES
