"""Addresses that outlive their machines: reserved, attached, moved; to one machine at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Invalid, MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointSlice
from konverge.operators.wukong.addresses import DETACHED, machine_of
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import AnyWukong, WukongAddress
from konverge.runtime import find_condition
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.world import SPACE, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-30")]

IP = "192.0.2.7"
OTHERS = "example.com/balancer"
"""A class that the load balancer of the simulated cluster leaves alone."""
PORTS = [{"name": "ssh", "port": 22}, {"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"}]


async def reserve(w: World, name: str = "public", **spec: Any) -> None:
    head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongAddress"}
    given = {"ports": PORTS, **spec}
    await w.client.create({**head, "metadata": {"name": name, "namespace": SPACE}, "spec": given})


async def move(w: World, machine: str | None) -> None:
    await w.client.patch(WukongAddress, "public", MergePatch({"spec": {"wukongName": machine}}), SPACE)


async def service(w: World) -> Service:
    return await w.client.get(Service, "public-address", SPACE)


async def balance(w: World, ip: str = IP) -> None:
    """As a load balancer does."""
    given = {"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}
    await w.client.patch(Service, "public-address", MergePatch(given), SPACE, subresource="status")


async def address(w: World) -> WukongAddress:
    return await w.client.get(WukongAddress, "public", SPACE)


async def ready(w: World) -> tuple[str, str, str]:
    condition = find_condition((await address(w)).status.conditions, "Ready")
    return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)


async def until(w: World, status: str, reason: str) -> str:
    async def reached() -> bool:
        return (await ready(w))[:2] == (status, reason)

    await w.until(reached, f"{status} {reason}")
    return (await ready(w))[2]


async def behind(w: World) -> set[str]:
    """The machines whose pods the endpoints of the address are."""
    slices = await w.client.list(EndpointSlice, SPACE, label_selector="kubernetes.io/service-name=public-address")
    ips = {ip for entry in slices for endpoint in entry.endpoints for ip in endpoint.addresses}
    pods = await w.client.list(Pod, SPACE)
    return {pod.metadata.labels.get(LABEL, "") for pod in pods if pod.status.pod_ip in ips}


async def test_an_address_is_reserved_attached_and_moved() -> None:
    async with world(timings=QUICK) as w:
        await w.running("one")
        await w.running("two")
        await reserve(w, annotations={"metallb.io/address-pool": "tenants"}, loadBalancerClass="metallb")
        assert "is there one" in await until(w, "False", "AddressPending")
        made = await service(w)
        assert made.spec is not None
        assert (made.spec.type, made.spec.load_balancer_class, made.spec.load_balancer_ip) == (
            "LoadBalancer",
            "metallb",
            None,
        )
        assert made.spec.selector == {DETACHED: (await address(w)).metadata.uid}
        assert made.metadata.annotations["metallb.io/address-pool"] == "tenants"
        ports = [(port.name, port.port, port.target_port, port.protocol) for port in made.spec.ports]
        assert ports == [("ssh", 22, 22, "TCP"), ("dns", 53, 5353, "UDP")]
        await balance(w)
        assert await until(w, "True", "Reserved") == f"{IP} leads to no machine"
        assert await behind(w) == set()

        await move(w, "one")
        assert await until(w, "True", "Attached") == f"{IP} leads to Wukong one"
        await asyncio.sleep(10)
        assert await behind(w) == {"one"}
        await move(w, "two")
        seen: list[frozenset[str]] = []
        for _ in range(200):
            await asyncio.sleep(0.05)
            seen.append(frozenset(await behind(w)))
        assert all(len(machines) <= 1 for machines in seen)
        assert seen[-1] == {"two"}
        assert await until(w, "True", "Attached") == f"{IP} leads to Wukong two"
        shown = (await address(w)).status
        assert (shown.address, shown.attached_to, shown.service_name) == (IP, "two", "public-address")
        calls = [call for call in w.writes() if call.resource == Service.resource and call.name == "public-address"]
        selected = [b"detached" in (call.body or b"") for call in calls]
        assert selected == [True, False, True, False], "each move is a detachment, then an attachment"
        await asyncio.sleep(300)
        assert w.writes() == []

        await move(w, None)
        await until(w, "True", "Reserved")
        assert (await address(w)).status.attached_to == ""
        await w.client.delete(WukongAddress, "public", SPACE)
        await w.gone(Service, "public-address")


async def test_it_is_not_attached_while_an_endpoint_of_the_former_machine_is_there() -> None:
    async with world(timings=QUICK) as w:
        await w.running("one")
        await w.running("two")
        await reserve(w, wukongName="one")
        await asyncio.sleep(10)
        labels = {"kubernetes.io/service-name": "public-address"}
        late = EndpointSlice(
            metadata=ObjectMeta(name="late", namespace=SPACE, labels=labels),
            address_type="IPv4",
            endpoints=[Endpoint(addresses=["10.9.9.9"])],
        )
        await w.client.create(late)
        await move(w, "two")
        message = await until(w, "False", "Detaching")
        await asyncio.sleep(60)
        assert (await ready(w))[2] == (
            "endpoint 10.9.9.9 is still there: the address leads nowhere until that is gone"
        ), message  # fmt: skip
        assert machine_of(await service(w)) == ""
        assert (await address(w)).status.attached_to == ""
        await w.client.delete(EndpointSlice, "late", SPACE)
        await asyncio.sleep(10)
        assert machine_of(await service(w)) == "two"


async def test_an_address_stays_when_its_machine_goes() -> None:
    async with world(timings=QUICK) as w:
        await w.running("one")
        await reserve(w, wukongName="one")
        await asyncio.sleep(10)
        await balance(w)
        await until(w, "True", "Attached")
        await w.delete("one")
        message = await until(w, "False", "WukongNotFound")
        assert message == "there is no Wukong one: the address is kept in reserve"
        assert machine_of(await service(w)) == ""
        assert (await address(w)).status.address == IP
        await w.gone(AnyWukong, "one")
        await w.running("one")
        await until(w, "True", "Attached")
        await w.create("three", networks=[{"name": "lan", "type": "bridge", "primary": True}])
        await move(w, "three")
        assert "is not on the pod network" in await until(w, "False", "NoPodNetwork")
        assert machine_of(await service(w)) == ""


async def test_a_service_that_was_deleted_asks_for_the_same_address() -> None:
    async with world(timings=QUICK) as w:
        await reserve(w, loadBalancerClass=OTHERS)
        await until(w, "False", "AddressPending")
        await balance(w)
        await until(w, "True", "Reserved")
        await w.client.delete(Service, "public-address", SPACE)
        await asyncio.sleep(10)
        again = await service(w)
        assert again.spec is not None
        assert again.spec.load_balancer_ip == IP
        await balance(w)
        await asyncio.sleep(10)
        again = await service(w)
        assert again.spec is not None
        assert again.spec.load_balancer_ip == IP, "it stays"


async def test_the_address_of_the_spec_is_asked_for() -> None:
    async with world(timings=QUICK) as w:
        await reserve(w, address=IP, loadBalancerClass=OTHERS)
        await until(w, "False", "AddressPending")
        made = await service(w)
        assert made.spec is not None
        assert made.spec.load_balancer_ip == IP
        await balance(w, "192.0.2.99")
        assert await until(w, "False", "OtherAddress") == f"the load balancer gave 192.0.2.99 in place of {IP}"
        await balance(w)
        await until(w, "True", "Reserved")


async def test_the_service_of_another_is_left_alone() -> None:
    async with world(timings=QUICK) as w:
        await w.running("one")
        body = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
        await w.client.create(body | {"metadata": {"name": "public-address", "namespace": SPACE}})
        before = await service(w)
        await reserve(w, wukongName="one")
        await until(w, "False", "NotOurs")
        await asyncio.sleep(60)
        assert (await service(w)).metadata.resource_version == before.metadata.resource_version
        assert (await address(w)).status.attached_to == ""
        await w.client.delete(Service, "public-address", SPACE)
        await until(w, "True", "Attached")
        assert machine_of(await service(w)) == "one"


async def test_what_the_definition_refuses() -> None:
    async with world(timings=QUICK) as w:
        await reserve(w, address=IP)
        for change in ({"address": "192.0.2.8"}, {"address": None}, {"loadBalancerClass": "other"}):
            with pytest.raises(Invalid, match="make another WukongAddress"):
                await w.client.patch(WukongAddress, "public", MergePatch({"spec": change}), SPACE)
        for name in ("7up", "a" * 56, "a.b"):
            with pytest.raises(Invalid, match="NAME-address"):
                await reserve(w, name)
        await reserve(w, "a" * 55)
        with pytest.raises(Invalid):
            await reserve(w, "none", ports=[])
        with pytest.raises(Invalid):
            await reserve(w, "bad", address="x")


async def test_killed_after_every_write_it_is_never_on_two() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(w.client):
            await w.running("one")
            await w.running("two")
            await reserve(w, wukongName="one")
            await asyncio.sleep(10)
            assert await behind(w) == {"one"}
        await move(w, "two")

        async def moved() -> bool:
            now = await behind(w)
            assert len(now) <= 1
            return now == {"two"} and (await address(w)).status.attached_to == "two"

        writes = await by_mortals(w, moved)
        assert writes.count("patch services") == 2, "detached once, attached once"
