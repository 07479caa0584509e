"""Endpoints and slices: reserved labels, hints, slices of others, leftovers, the bounds of mirroring."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.kube.endpoints import controller as endpoints
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import Endpoints, Event, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.runtime import set_controller_reference
from tests.kube.conftest import Run
from tests.kube.endpoints.test_controller import node, pod, ready_addresses, service, settled

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-38")]

NAME, MANAGER = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
OURS = "endpointslice-controller.k8s.io"


async def test_labels_of_the_controllers_are_not_taken_from_the_service(client: Client, run: Run) -> None:
    mine = {NAME: "x", MANAGER: "x", "service.kubernetes.io/headless": "x", "team": "a"}
    async with run(endpoints):
        await service(client, labels=mine)
        written, (slice_,) = await settled(client)
        assert slice_.metadata.labels == {"team": "a", NAME: "web", MANAGER: OURS}
        assert written.metadata.labels == {
            "team": "a", NAME: "x", MANAGER: "x", "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("distribution", "zones", "nodes"),
    [
        (None, None, None),
        ("PreferClose", ["z1"], []),
        ("PreferSameZone", ["z1"], []),
        ("PreferSameNode", ["z1"], ["n"]),
    ],
)
async def test_hints_are_given_for_ready_endpoints(
    client: Client, run: Run, distribution: str | None, zones: Any, nodes: Any
) -> None:
    await node(client, "n")
    async with run(endpoints):
        await service(client)
        change = MergePatch({"spec": {"trafficDistribution": distribution}})
        await client.patch(Service, "web", change, "default")
        await pod(client, "a", "10.0.0.1", on="n")
        await pod(client, "b", "10.0.0.2", on="n", ready=False)
        _, (slice_,) = await settled(client)
    by_address = {endpoint.addresses[0]: endpoint for endpoint in slice_.endpoints}
    hints = by_address["10.0.0.1"].hints
    assert ([zone.name for zone in hints.for_zones] if hints else None) == zones
    assert ([place.name for place in hints.for_nodes] if hints else None) == nodes
    assert by_address["10.0.0.2"].hints is None
    ready = by_address["10.0.0.1"]
    assert to_dict(ready.conditions) == {"ready": True, "serving": True, "terminating": False}
    assert (ready.node_name, ready.zone, ready.hostname) == ("n", "z1", None)
    assert ready.target_ref is not None
    assert (ready.target_ref.kind, ready.target_ref.namespace, ready.target_ref.name) == ("Pod", "default", "a")


async def test_slices_of_others_stay_and_ours_of_another_service_or_family_go(client: Client, run: Run) -> None:
    made = await service(client)

    async def slice_(name: str, manager: str, family: str = "IPv4", *, owner: Any = made) -> None:
        meta = ObjectMeta(name=name, namespace="default", labels={NAME: "web", MANAGER: manager})
        desired = EndpointSlice(metadata=meta, address_type=family, endpoints=[])
        if owner is not None:
            set_controller_reference(owner, desired)
        await client.create(desired)

    await slice_("mine", OURS)
    await slice_("family", OURS, "IPv6")
    await slice_("orphan", OURS, owner=None)
    await slice_("foreign", "someone.example.com", owner=None)
    async with run(endpoints):
        _, slices = await settled(client)
    assert sorted(item.metadata.name for item in slices) == ["foreign", "mine"]


@pytest.mark.parametrize(
    ("labels", "annotations", "kept"),
    [
        ({"endpoints.kubernetes.io/managed-by": "endpoint-controller"}, {}, False),
        ({}, {}, False),  # at the start, whoever made them
        ({}, {"control-plane.alpha.kubernetes.io/leader": "x"}, True),
    ],
)
async def test_endpoints_without_a_service_at_the_start(
    client: Client, run: Run, labels: dict[str, str], annotations: dict[str, str], kept: bool
) -> None:
    meta = ObjectMeta(name="left", namespace="default", labels=labels, annotations=annotations)
    await client.create(Endpoints(metadata=meta))
    async with run(endpoints):
        await asyncio.sleep(2)
        found = {item.metadata.name for item in await client.list(Endpoints, "default")}
    assert ("left" in found) is kept


async def test_endpoints_of_ours_are_deleted_even_if_they_come_later(client: Client, run: Run) -> None:
    ours = ObjectMeta(
        name="late", namespace="default", labels={"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    )
    async with run(endpoints):
        await asyncio.sleep(1)
        await client.create(Endpoints(metadata=ours))
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(Endpoints, "late", "default")


async def test_capacity_is_noted_and_the_note_removed(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints.subsets.truncate, "__defaults__", (2,))
    await node(client)
    async with run(endpoints):
        await service(client)
        for number in range(3):
            await pod(client, f"p{number}", f"10.0.0.{number + 1}")
        await settled(client)
        await client.patch(Endpoints, "web", MergePatch({"metadata": {"annotations": {"mine": "x"}}}), "default")
        written, _ = await settled(client)
        assert written.metadata.annotations[endpoints.OVER_CAPACITY] == "truncated"
        assert written.metadata.annotations["mine"] == "x"
        assert ready_addresses(written) == [["10.0.0.1", "10.0.0.2"]]
        await client.delete(Pod, "p0", "default", grace_period=0)
        written, _ = await settled(client)
        assert endpoints.OVER_CAPACITY not in written.metadata.annotations
        assert ready_addresses(written) == [["10.0.0.2", "10.0.0.3"]]


async def test_no_more_than_a_thousand_addresses_of_a_subset_are_mirrored(client: Client, run: Run) -> None:
    def subset(count: int) -> dict[str, Any]:
        addresses = [{"ip": f"192.0.{number // 200}.{number % 200 + 1}"} for number in range(count)]
        return {
            "addresses": addresses,
            "ports": [{"port": 80, "name": "http", "protocol": "TCP", "appProtocol": "h2c"}],
        }

    async def mirrored() -> int:
        _, slices = await settled(client, "manual")
        assert {(p.name, p.port, p.app_protocol) for item in slices for p in item.ports} == {("http", 80, "h2c")}
        return sum(len(item.endpoints) for item in slices)

    async with run(endpoints):
        await service(client, "manual", selector=None)
        body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "manual"}, "subsets": [subset(1000)]}
        await client.create(body, "default")
        assert await mirrored() == 1000
        assert (await client.list(Event, "default")).items == []
        await client.patch(Endpoints, "manual", MergePatch({"subsets": [subset(1003)]}), "default")
        assert await mirrored() == 1000
        (event,) = (await client.list(Event, "default")).items
        assert (event.type, event.reason) == ("Warning", "TooManyAddressesToMirror")
        assert event.source is not None
        assert event.source.component == "endpoint-slice-mirroring-controller"
        assert "3 addresses were skipped" in (event.message or "")
        await client.patch(Service, "manual", MergePatch({"spec": {"selector": {"app": "web"}}}), "default")
        await asyncio.sleep(2)
        slices = (await client.list(EndpointSlice, "default", label_selector=f"{NAME}=manual")).items
        managers = {item.metadata.labels[MANAGER] for item in slices}
        assert managers == {OURS}


async def test_an_election_record_and_notes_of_tools_are_not_mirrored(client: Client, run: Run) -> None:
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "x"}
    target = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}
    address = {"ip": "192.0.2.1", "hostname": "h", "nodeName": "n", "targetRef": target}
    subset = {"addresses": [address], "ports": [{"port": 80}]}
    async with run(endpoints):
        await service(client, "manual", selector=None)
        meta = {"name": "manual", "annotations": notes}
        await client.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}, "default")
        _, (slice_,) = await settled(client, "manual")
        assert slice_.metadata.annotations == {"mine": "x"}
        (endpoint,) = slice_.endpoints
        assert (endpoint.hostname, endpoint.node_name) == ("h", "n")
        assert to_dict(endpoint.target_ref) == target
        leader = MergePatch({"metadata": {"annotations": {"control-plane.alpha.kubernetes.io/leader": "x"}}})
        await client.patch(Endpoints, "manual", leader, "default")
        _, slices = await settled(client, "manual")
        assert slices == []


async def test_no_slice_is_created_for_a_service_that_is_being_deleted(client: Client, run: Run) -> None:
    await service(client)
    kept = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
    await client.patch(Service, "web", kept, "default")
    await client.delete(Service, "web", "default")
    async with run(endpoints):
        await asyncio.sleep(2)
        slices = (await client.list(EndpointSlice, "default", label_selector=f"{NAME}=web")).items
    assert slices == []
