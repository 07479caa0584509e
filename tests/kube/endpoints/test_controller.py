"""Endpoints and EndpointSlices: what the pods behind a Service lead to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.kube.endpoints import controller as endpoints
from konverge.objects.kinds.core_v1 import Endpoints, Node, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from tests.kube.conftest import Run

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-38")]

PORTS = [{"port": 80, "targetPort": 8080}]


async def service(client: Client, name: str = "web", *, labels: Any = None, **spec: Any) -> Service:
    body = {"selector": {"app": "web"}, "ports": PORTS, **spec}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels or {}}, "spec": body}
    await client.create(made, "default")
    return await client.get(Service, name, "default")


async def node(client: Client, name: str = "node-1", zone: str = "z1") -> None:
    await client.create(Node(metadata=ObjectMeta(name=name, labels={"topology.kubernetes.io/zone": zone})))


async def pod(
    client: Client, name: str, ip: str, *, ready: bool = True, on: str = "node-1", ips: Any = None, **spec: Any
) -> Pod:
    container = {"name": "main", "image": "app:1", "ports": [{"name": "http", "containerPort": 8081}]}
    body = {"containers": [container], "nodeName": on, **spec}
    meta = {"name": name, "labels": {"app": "web", "extra": "x"}}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}, "default")
    await tell(client, name, ready=ready, ip=ip, ips=ips)
    return await client.get(Pod, name, "default")


async def tell(
    client: Client, name: str, *, ready: bool, ip: str, ips: Any = None, phase: str = "Running", at: str = "00:00:07"
) -> None:
    condition = {
        "type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": f"2030-01-01T{at}Z",
    }  # fmt: skip
    addresses = [{"ip": one} for one in ips or [ip]]
    status = {"phase": phase, "conditions": [condition], "podIP": ip, "podIPs": addresses}
    await client.patch(Pod, name, MergePatch({"status": status}), "default", subresource="status")


async def settled(client: Client, name: str = "web") -> tuple[Endpoints, list[EndpointSlice]]:
    await asyncio.sleep(2)
    found = await client.list(EndpointSlice, "default", label_selector=f"kubernetes.io/service-name={name}")
    return await client.get(Endpoints, name, "default"), found.items


def ready_addresses(found: Endpoints) -> list[list[str]]:
    return [[one.ip for one in subset.addresses] for subset in found.subsets]


async def test_without_pods_there_is_an_empty_slice(client: Client, run: Run) -> None:
    async with run(endpoints):
        made = await service(client, labels={"team": "a"})
        found, (one,) = await settled(client)
        assert found.subsets == []
        assert found.metadata.labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller", "team": "a"}
        assert (one.endpoints, one.ports, one.address_type) == ([], [], "IPv4")
        assert one.metadata.name.startswith("web-")
        assert len(one.metadata.name) == len("web-12345")
        assert one.metadata.labels == {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": "web",
            "team": "a",
        }
        (owner,) = one.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == (
            "Service", made.metadata.uid, True, True,
        )  # fmt: skip


async def test_ready_pods_are_addresses_with_their_node_and_zone(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        first = await pod(client, "a", "10.0.0.1")
        await pod(client, "b", "10.0.0.2", ready=False)
        found, (one,) = await settled(client)
        (subset,) = found.subsets
        assert [address.ip for address in subset.not_ready_addresses] == ["10.0.0.2"]
        (address,) = subset.addresses
        assert (address.ip, address.node_name) == ("10.0.0.1", "node-1")
        assert address.target_ref
        assert address.target_ref.uid == first.metadata.uid
        assert [(port.port, port.protocol, port.name) for port in subset.ports] == [(8080, "TCP", None)]
        assert [(port.port, port.protocol, port.name) for port in one.ports] == [(8080, "TCP", "")]
        facts = {
            endpoint.addresses[0]: (
                endpoint.conditions and (endpoint.conditions.ready, endpoint.conditions.serving),
                endpoint.zone, endpoint.node_name,
            )
            for endpoint in one.endpoints
        }  # fmt: skip
        assert facts == {
            "10.0.0.1": ((True, True), "z1", "node-1"),
            "10.0.0.2": ((False, False), "z1", "node-1"),
        }
        name = one.metadata.name
        for gone in ("a", "b"):
            await client.delete(Pod, gone, "default", grace_period=0)
        found, (one,) = await settled(client)
        assert (found.subsets, one.endpoints, one.ports, one.metadata.name) == ([], [], [], name)


async def test_a_pod_that_goes_serves_to_its_end_in_slices_only(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        await asyncio.sleep(1)
        await client.delete(Pod, "a", "default")
        found, (one,) = await settled(client)
        assert found.subsets == []
        conditions = one.endpoints[0].conditions
        assert conditions
        assert (conditions.ready, conditions.serving, conditions.terminating) == (False, True, True)
        await tell(client, "a", ready=False, ip="10.0.0.1", phase="Failed")
        _, (one,) = await settled(client)
        assert one.endpoints == []


async def test_unready_pods_are_published_on_request(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client, publishNotReadyAddresses=True)
        await pod(client, "a", "10.0.0.1", ready=False)  # its node does not exist, either
        found, (one,) = await settled(client)
        assert ready_addresses(found) == [["10.0.0.1"]]
        conditions = one.endpoints[0].conditions
        assert conditions
        assert (conditions.ready, conditions.serving) == (True, False)


async def test_pods_of_absent_nodes_are_in_endpoints_but_not_in_slices(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        found, (one,) = await settled(client)
        assert ready_addresses(found) == [["10.0.0.1"]]
        assert one.endpoints == []
        await node(client)  # it appears
        _, (one,) = await settled(client)
        assert [endpoint.addresses for endpoint in one.endpoints] == [["10.0.0.1"]]
        await client.patch(Node, "node-1", MergePatch({"metadata": {"labels": {endpoints.ZONE: "z2"}}}))
        _, (one,) = await settled(client)
        assert [endpoint.zone for endpoint in one.endpoints] == ["z2"]


async def test_named_ports_follow_each_pod(client: Client, run: Run) -> None:
    await node(client)
    other = [{"name": "main", "image": "app:1", "ports": [{"name": "http", "containerPort": 9090}]}]
    ports = [{"name": "web", "port": 80, "targetPort": "http"}, {"name": "none", "port": 81, "targetPort": "none"}]
    async with run(endpoints):
        await service(client, ports=ports)
        await pod(client, "a", "10.0.0.1")
        await pod(client, "b", "10.0.0.2", containers=other)
        found, slices = await settled(client)
        subsets = {subset.ports[0].port: [one.ip for one in subset.addresses] for subset in found.subsets}
        assert subsets == {8081: ["10.0.0.1"], 9090: ["10.0.0.2"]}
        by_port = {one.ports[0].port: [endpoint.addresses[0] for endpoint in one.endpoints] for one in slices}
        assert by_port == {8081: ["10.0.0.1"], 9090: ["10.0.0.2"]}
        assert all(len(one.ports) == 1 for one in slices)


async def test_ports_are_in_the_order_of_the_real_one(client: Client, run: Run) -> None:
    await node(client)
    ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 53, "protocol": "UDP"}]
    async with run(endpoints):
        await service(client, ports=ports)
        await pod(client, "a", "10.0.0.1")
        found, (one,) = await settled(client)
        assert [port.name for port in found.subsets[0].ports] == ["b", "a"]
        assert [port.name for port in one.ports] == ["a", "b"]


async def test_headless_services_name_their_pods_and_need_no_ports(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client, clusterIP="None", ports=[])
        await pod(client, "a", "10.0.0.1", hostname="db-0", subdomain="web")
        await pod(client, "b", "10.0.0.2", hostname="db-1", subdomain="else")
        found, (one,) = await settled(client)
        assert {address.ip: address.hostname for address in found.subsets[0].addresses} == {
            "10.0.0.1": "db-0", "10.0.0.2": None,
        }  # fmt: skip
        assert {endpoint.hostname for endpoint in one.endpoints} == {"db-0", None}
        assert found.metadata.labels["service.kubernetes.io/headless"] == ""
        assert one.metadata.labels["service.kubernetes.io/headless"] == ""
        assert one.ports == []
        assert found.subsets[0].ports == []


async def test_slices_hold_a_hundred_each(client: Client, run: Run) -> None:
    await node(client)
    await asyncio.gather(*(pod(client, f"p{n}", f"10.0.1.{n}") for n in range(120)))
    async with run(endpoints):
        await service(client)
        _, slices = await settled(client)
        assert sorted(len(one.endpoints) for one in slices) == [20, 100]
        versions = {one.metadata.name: one.metadata.resource_version for one in slices}
        await pod(client, "late", "10.0.2.1")
        _, slices = await settled(client)
        assert sorted(len(one.endpoints) for one in slices) == [21, 100]
        changed = [one for one in slices if versions[one.metadata.name] != one.metadata.resource_version]
        assert [len(one.endpoints) for one in changed] == [21]


async def test_labels_and_traffic_distribution_reach_the_slices(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client, labels={"team": "a"})
        await pod(client, "a", "10.0.0.1")
        await settled(client)
        change = {"metadata": {"labels": {"team": "b", "new": "x"}}, "spec": {"trafficDistribution": "PreferSameNode"}}
        await client.patch(Service, "web", MergePatch(change), "default")
        found, (one,) = await settled(client)
        assert (found.metadata.labels["team"], one.metadata.labels["team"]) == ("b", "b")
        hints = one.endpoints[0].hints
        assert hints
        assert [zone.name for zone in hints.for_zones] == ["z1"]
        assert [place.name for place in hints.for_nodes] == ["node-1"]


async def test_what_others_spoil_is_put_right_and_quiet_is_kept(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        found, (one,) = await settled(client)
        await client.patch(Pod, "a", MergePatch({"metadata": {"annotations": {"x": "y"}}}), "default")
        again, (same,) = await settled(client)
        assert again.metadata.resource_version == found.metadata.resource_version
        assert same.metadata.resource_version == one.metadata.resource_version
        await client.delete(EndpointSlice, one.metadata.name, "default")
        await client.patch(Endpoints, "web", MergePatch({"subsets": None}), "default")
        found, (one,) = await settled(client)
        assert ready_addresses(found) == [["10.0.0.1"]]
        assert len(one.endpoints) == 1


async def test_the_trigger_time_is_that_of_the_change(client: Client, run: Run) -> None:
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    await node(client)
    async with run(endpoints):
        made = await service(client)
        found, (one,) = await settled(client)
        assert found.metadata.annotations[key] == made.metadata.creation_timestamp
        assert one.metadata.annotations[key] == made.metadata.creation_timestamp
        await pod(client, "a", "10.0.0.1")
        found, (one,) = await settled(client)
        assert found.metadata.annotations[key] == one.metadata.annotations[key] == "2030-01-01T00:00:07Z"
        await client.delete(Pod, "a", "default", grace_period=0)
        found, (one,) = await settled(client)
        assert key not in found.metadata.annotations
        assert key not in one.metadata.annotations


async def test_endpoints_go_with_their_service_and_strangers_stay(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client)
        await settled(client)
        await client.create(Endpoints(metadata=ObjectMeta(name="stranger", namespace="default")))
        await client.delete(Service, "web", "default")
        await asyncio.sleep(2)
        with pytest.raises(NotFound):
            await client.get(Endpoints, "web", "default")
        await client.get(Endpoints, "stranger", "default")


async def test_hand_made_endpoints_are_mirrored(client: Client, run: Run) -> None:
    subset = {
        "addresses": [{"ip": "192.0.2.1"}, {"ip": "fd00::1"}],
        "notReadyAddresses": [{"ip": "192.0.2.2"}],
        "ports": [{"port": 80}],
    }
    meta = {"name": "manual", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    async with run(endpoints):
        await service(client, "manual", selector=None)
        await client.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}, "default")
        _, slices = await settled(client, "manual")
        by_type = {one.address_type: one for one in slices}
        four = by_type["IPv4"]
        assert {e.addresses[0]: e.conditions and e.conditions.ready for e in four.endpoints} == {
            "192.0.2.1": True, "192.0.2.2": False,
        }  # fmt: skip
        assert [endpoint.addresses for endpoint in by_type["IPv6"].endpoints] == [["fd00::1"]]
        assert four.metadata.labels == {
            "a": "b",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            "kubernetes.io/service-name": "manual",
        }
        assert four.metadata.annotations == {"c": "d"}
        assert four.metadata.owner_references[0].kind == "Endpoints"
        await client.patch(
            Endpoints, "manual", MergePatch({"metadata": {"labels": {endpoints.mirroring.SKIP: "true"}}}), "default"
        )
        _, slices = await settled(client, "manual")
        assert slices == []


async def test_no_selector_no_endpoints(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client, "manual", selector=None)
        await client.create(
            {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "far"},
                "spec": {"type": "ExternalName", "externalName": "example.com", "selector": {"app": "web"}},
            },
            "default",
        )  # fmt: skip
        await asyncio.sleep(2)
        names = {found.metadata.name for found in await client.list(Endpoints, "default")}
        assert not names & {"manual", "far"}
