"""The trees of our operators' resources: down to the pods and the claims."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from konverge.operators.catalog import find
from konverge.sim.cluster import Cluster
from konverge.sim.outside import with_simulators
from konverge.testing.operators import RunOperator, install_definitions
from tests.console.office import API, in_front_of
from tests.console.test_tree import relations
from tests.explain.samples import create

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-07")]

NACOS = """
apiVersion: nacos.io/v1alpha1
kind: Nacos
metadata: {name: mq, namespace: default}
spec:
  type: cluster
  replicas: 3
  volume: {enabled: true, requests: {storage: 1Gi}}
"""
WUKONG = """
apiVersion: vm.novasphere.dev/v1alpha1
kind: Wukong
metadata: {name: vm, namespace: default}
spec: {cpu: 1, memory: 1Gi, disks: [{name: system, size: 1Gi}]}
"""


async def tree_of(operator: str, text: str) -> dict[str, Any]:
    obj = yaml.safe_load(text)
    async with Cluster(nodes=1) as cluster:
        await install_definitions(cluster.client, find(operator).kinds)
        async with (
            with_simulators(cluster, [find(operator)]) as controllers,
            RunOperator(cluster)(controllers),
            in_front_of(cluster.server, cluster.client) as office,
        ):
            await create(cluster.client, obj)
            await cluster.settle(quiet=30)
            kind, name = f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"]
            tree: dict[str, Any] = await office.get(f"{API}/tree", kind=kind, namespace="default", name=name)
            return tree


async def test_nacos_leads_to_its_members_and_their_claims() -> None:
    tree = await tree_of("nacos", NACOS)
    assert relations(tree) >= {
        ("Nacos", "owns", "StatefulSet"),
        ("StatefulSet", "owns", "Pod"),
        ("Pod", "mounts", "PersistentVolumeClaim"),
        ("Nacos", "owns", "Service"),
        ("Service", "selects", "Pod"),
        ("Service", "owns", "EndpointSlice"),
        ("EndpointSlice", "routes to", "Pod"),
    }
    pods = [node for node in tree["nodes"] if node["kind"] == "Pod"]
    assert [node["health"] for node in pods] == ["ok"] * 3


async def test_a_machine_leads_to_its_instance_its_pod_and_its_claims() -> None:
    tree = await tree_of("wukong", WUKONG)
    assert relations(tree) >= {
        ("Wukong", "owns", "VirtualMachine"),
        ("VirtualMachine", "owns", "VirtualMachineInstance"),
        ("VirtualMachineInstance", "owns", "Pod"),
    }
    claims = {node["id"] for node in tree["nodes"] if node["kind"] == "PersistentVolumeClaim"}
    assert claims
    assert claims & {edge["to"] for edge in tree["edges"]}
