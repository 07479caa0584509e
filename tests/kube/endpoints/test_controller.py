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
    await report(client, name, ready=ready, ip=ip, ips=ips)
    return await client.get(Pod, name, "default")


async def report(
    client: Client, name: str, *, ready: bool, ip: str, ips: Any = None, phase: str = "Running", at: str = "00:00:07"
) -> None:
    condition = {
        "type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": f"2030-01-01T{at}Z",
    }  # fmt: skip
    addresses = [{"ip": address} for address in ips or [ip]]
    status = {"phase": phase, "conditions": [condition], "podIP": ip, "podIPs": addresses}
    await client.patch(Pod, name, MergePatch({"status": status}), "default", subresource="status")


async def settled(client: Client, name: str = "web") -> tuple[Endpoints, list[EndpointSlice]]:
    await asyncio.sleep(2)
    slices = await client.list(EndpointSlice, "default", label_selector=f"kubernetes.io/service-name={name}")
    return await client.get(Endpoints, name, "default"), slices.items


def ready_addresses(written: Endpoints) -> list[list[str]]:
    return [[address.ip for address in subset.addresses] for subset in written.subsets]


async def test_a_service_without_pods_has_an_empty_slice(client: Client, run: Run) -> None:
    async with run(endpoints):
        made = await service(client, labels={"team": "a"})
        written, (slice_,) = await settled(client)
        assert written.subsets == []
        assert written.metadata.labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller", "team": "a"}
        assert (slice_.endpoints, slice_.ports, slice_.address_type) == ([], [], "IPv4")
        assert slice_.metadata.name.startswith("web-")
        assert len(slice_.metadata.name) == len("web-12345")
        assert slice_.metadata.labels == {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": "web",
            "team": "a",
        }
        (owner,) = slice_.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == (
            "Service", made.metadata.uid, True, True,
        )  # fmt: skip


async def test_ready_pods_are_addresses_with_their_node_and_zone(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        first = await pod(client, "a", "10.0.0.1")
        await pod(client, "b", "10.0.0.2", ready=False)
        written, (slice_,) = await settled(client)
        (subset,) = written.subsets
        assert [address.ip for address in subset.not_ready_addresses] == ["10.0.0.2"]
        (address,) = subset.addresses
        assert (address.ip, address.node_name) == ("10.0.0.1", "node-1")
        assert address.target_ref
        assert address.target_ref.uid == first.metadata.uid
        assert [(port.port, port.protocol, port.name) for port in subset.ports] == [(8080, "TCP", None)]
        assert [(port.port, port.protocol, port.name) for port in slice_.ports] == [(8080, "TCP", "")]
        facts = {
            endpoint.addresses[0]: (
                endpoint.conditions and (endpoint.conditions.ready, endpoint.conditions.serving),
                endpoint.zone, endpoint.node_name,
            )
            for endpoint in slice_.endpoints
        }  # fmt: skip
        assert facts == {
            "10.0.0.1": ((True, True), "z1", "node-1"),
            "10.0.0.2": ((False, False), "z1", "node-1"),
        }
        name = slice_.metadata.name
        for gone in ("a", "b"):
            await client.delete(Pod, gone, "default", grace_period=0)
        written, (slice_,) = await settled(client)
        assert (written.subsets, slice_.endpoints, slice_.ports, slice_.metadata.name) == ([], [], [], name)


async def test_a_terminating_pod_is_in_slices_only(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        await asyncio.sleep(1)
        await client.delete(Pod, "a", "default")
        written, (slice_,) = await settled(client)
        assert written.subsets == []
        conditions = slice_.endpoints[0].conditions
        assert conditions
        assert (conditions.ready, conditions.serving, conditions.terminating) == (False, True, True)
        await report(client, "a", ready=False, ip="10.0.0.1", phase="Failed")
        _, (slice_,) = await settled(client)
        assert slice_.endpoints == []


async def test_pods_that_are_not_ready_are_published_on_request(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client, publishNotReadyAddresses=True)
        await pod(client, "a", "10.0.0.1", ready=False)  # its node does not exist, either
        written, (slice_,) = await settled(client)
        assert ready_addresses(written) == [["10.0.0.1"]]
        conditions = slice_.endpoints[0].conditions
        assert conditions
        assert (conditions.ready, conditions.serving) == (True, False)


async def test_pods_of_absent_nodes_are_in_endpoints_but_not_in_slices(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        written, (slice_,) = await settled(client)
        assert ready_addresses(written) == [["10.0.0.1"]]
        assert slice_.endpoints == []
        await node(client)  # it appears
        _, (slice_,) = await settled(client)
        assert [endpoint.addresses for endpoint in slice_.endpoints] == [["10.0.0.1"]]
        await client.patch(Node, "node-1", MergePatch({"metadata": {"labels": {endpoints.ZONE: "z2"}}}))
        _, (slice_,) = await settled(client)
        assert [endpoint.zone for endpoint in slice_.endpoints] == ["z2"]


async def test_named_ports_follow_each_pod(client: Client, run: Run) -> None:
    await node(client)
    other = [{"name": "main", "image": "app:1", "ports": [{"name": "http", "containerPort": 9090}]}]
    ports = [{"name": "web", "port": 80, "targetPort": "http"}, {"name": "none", "port": 81, "targetPort": "none"}]
    async with run(endpoints):
        await service(client, ports=ports)
        await pod(client, "a", "10.0.0.1")
        await pod(client, "b", "10.0.0.2", containers=other)
        written, slices = await settled(client)
        subsets = {subset.ports[0].port: [item.ip for item in subset.addresses] for subset in written.subsets}
        assert subsets == {8081: ["10.0.0.1"], 9090: ["10.0.0.2"]}
        by_port = {item.ports[0].port: [endpoint.addresses[0] for endpoint in item.endpoints] for item in slices}
        assert by_port == {8081: ["10.0.0.1"], 9090: ["10.0.0.2"]}
        assert all(len(item.ports) == 1 for item in slices)


async def test_ports_are_in_the_order_of_kube_controller_manager(client: Client, run: Run) -> None:
    await node(client)
    ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 53, "protocol": "UDP"}]
    async with run(endpoints):
        await service(client, ports=ports)
        await pod(client, "a", "10.0.0.1")
        written, (slice_,) = await settled(client)
        assert [port.name for port in written.subsets[0].ports] == ["b", "a"]
        assert [port.name for port in slice_.ports] == ["a", "b"]


async def test_headless_services_name_their_pods_and_need_no_ports(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client, clusterIP="None", ports=[])
        await pod(client, "a", "10.0.0.1", hostname="db-0", subdomain="web")
        await pod(client, "b", "10.0.0.2", hostname="db-1", subdomain="else")
        written, (slice_,) = await settled(client)
        assert {address.ip: address.hostname for address in written.subsets[0].addresses} == {
            "10.0.0.1": "db-0", "10.0.0.2": None,
        }  # fmt: skip
        assert {endpoint.hostname for endpoint in slice_.endpoints} == {"db-0", None}
        assert written.metadata.labels["service.kubernetes.io/headless"] == ""
        assert slice_.metadata.labels["service.kubernetes.io/headless"] == ""
        assert slice_.ports == []
        assert written.subsets[0].ports == []


async def test_a_slice_holds_a_hundred_endpoints(client: Client, run: Run) -> None:
    await node(client)
    await asyncio.gather(*(pod(client, f"p{n}", f"10.0.1.{n}") for n in range(120)))
    async with run(endpoints):
        await service(client)
        _, slices = await settled(client)
        assert sorted(len(slice_.endpoints) for slice_ in slices) == [20, 100]
        versions = {slice_.metadata.name: slice_.metadata.resource_version for slice_ in slices}
        await pod(client, "late", "10.0.2.1")
        _, slices = await settled(client)
        assert sorted(len(slice_.endpoints) for slice_ in slices) == [21, 100]
        changed = [slice_ for slice_ in slices if versions[slice_.metadata.name] != slice_.metadata.resource_version]
        assert [len(slice_.endpoints) for slice_ in changed] == [21]


async def test_labels_and_traffic_distribution_reach_the_slices(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client, labels={"team": "a"})
        await pod(client, "a", "10.0.0.1")
        await settled(client)
        change = {"metadata": {"labels": {"team": "b", "new": "x"}}, "spec": {"trafficDistribution": "PreferSameNode"}}
        await client.patch(Service, "web", MergePatch(change), "default")
        written, (slice_,) = await settled(client)
        assert (written.metadata.labels["team"], slice_.metadata.labels["team"]) == ("b", "b")
        hints = slice_.endpoints[0].hints
        assert hints
        assert [zone.name for zone in hints.for_zones] == ["z1"]
        assert [place.name for place in hints.for_nodes] == ["node-1"]


async def test_foreign_changes_are_repaired_and_the_steady_state_writes_nothing(client: Client, run: Run) -> None:
    await node(client)
    async with run(endpoints):
        await service(client)
        await pod(client, "a", "10.0.0.1")
        written, (slice_,) = await settled(client)
        await client.patch(Pod, "a", MergePatch({"metadata": {"annotations": {"x": "y"}}}), "default")
        again, (same,) = await settled(client)
        assert again.metadata.resource_version == written.metadata.resource_version
        assert same.metadata.resource_version == slice_.metadata.resource_version
        await client.delete(EndpointSlice, slice_.metadata.name, "default")
        await client.patch(Endpoints, "web", MergePatch({"subsets": None}), "default")
        written, (slice_,) = await settled(client)
        assert ready_addresses(written) == [["10.0.0.1"]]
        assert len(slice_.endpoints) == 1


async def test_the_trigger_time_is_that_of_the_change(client: Client, run: Run) -> None:
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    await node(client)
    async with run(endpoints):
        made = await service(client)
        written, (slice_,) = await settled(client)
        assert written.metadata.annotations[key] == made.metadata.creation_timestamp
        assert slice_.metadata.annotations[key] == made.metadata.creation_timestamp
        await pod(client, "a", "10.0.0.1")
        written, (slice_,) = await settled(client)
        assert written.metadata.annotations[key] == slice_.metadata.annotations[key] == "2030-01-01T00:00:07Z"
        await client.delete(Pod, "a", "default", grace_period=0)
        written, (slice_,) = await settled(client)
        assert key not in written.metadata.annotations
        assert key not in slice_.metadata.annotations


async def test_endpoints_are_deleted_with_their_service_and_foreign_ones_stay(client: Client, run: Run) -> None:
    async with run(endpoints):
        await service(client)
        await settled(client)
        await client.create(Endpoints(metadata=ObjectMeta(name="stranger", namespace="default")))
        await client.delete(Service, "web", "default")
        await asyncio.sleep(2)
        with pytest.raises(NotFound):
            await client.get(Endpoints, "web", "default")
        await client.get(Endpoints, "stranger", "default")


async def test_endpoints_made_by_users_are_mirrored(client: Client, run: Run) -> None:
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
        by_type = {slice_.address_type: slice_ for slice_ in slices}
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
            Endpoints, "manual", MergePatch({"metadata": {"labels": {endpoints.SKIP: "true"}}}), "default"
        )
        _, slices = await settled(client, "manual")
        assert slices == []


async def test_a_service_without_a_selector_gets_no_endpoints(client: Client, run: Run) -> None:
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
        names = {written.metadata.name for written in await client.list(Endpoints, "default")}
        assert not names & {"manual", "far"}
