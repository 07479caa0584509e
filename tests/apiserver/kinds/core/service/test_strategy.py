"""Services: what is allocated, kept, dropped and refused."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.kinds.core.service.allocation import Allocators, ips_of, ports_of
from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.harness import NAMESPACE, Outcome, World


class Offering(World):
    """A server that offers its allocators, as a real one does."""

    def __init__(self) -> None:
        super().__init__()
        self.service_allocators = Allocators("10.96.0.0/30")


def service(name: str = "s", **spec: Any) -> Obj:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def created(world: World, body: Obj) -> Outcome:
    outcome = world.create("", "Service", body)
    assert (outcome.texts, outcome.refusal) == ([], "")
    return outcome


@pytest.mark.spec("S-09")
def test_each_service_gets_an_address_of_its_own() -> None:
    world = Offering()
    first, second = (created(world, service(name)).obj for name in ("a", "b"))
    assert {*ips_of(first), *ips_of(second)} == {"10.96.0.1", "10.96.0.2"}
    refused = world.create("", "Service", service("c"))
    assert refused.refusal == 'Internal error occurred: failed to allocate a serviceIP for Service "c": range is full'


@pytest.mark.spec("S-09")
def test_a_claim_of_a_request_that_failed_is_void() -> None:
    world = Offering()
    bad = service("a", clusterIP="10.96.0.1", sessionAffinity="Odd")
    assert world.create("", "Service", bad).errors
    assert ips_of(created(world, service("b", clusterIP="10.96.0.1")).obj) == ["10.96.0.1"]
    taken = world.create("", "Service", service("c", clusterIP="10.96.0.1"))
    assert taken.refusal.endswith("failed to allocate IP 10.96.0.1: provided IP is already allocated")


@pytest.mark.spec("S-09")
def test_what_a_removed_service_had_is_free_again() -> None:
    world = Offering()
    gone = created(world, service("a", type="NodePort", clusterIP="10.96.0.1", ports=[{"port": 1, "nodePort": 30001}]))
    del world.stored["", "services", NAMESPACE, "a"]
    world.service_allocators.release(gone.obj)
    again = created(world, service("b", type="NodePort", clusterIP="10.96.0.1", ports=[{"port": 1, "nodePort": 30001}]))
    assert ports_of(again.obj) == [30001]


@pytest.mark.spec("S-09", "S-10")
def test_a_dry_run_takes_nothing() -> None:
    world = Offering()
    world.dry_run = True
    outcome = world.create("", "Service", service("a", type="NodePort"))
    assert outcome.obj["spec"]["clusterIP"] == "10.96.0.0"
    assert ports_of(outcome.obj) == [32769]
    world.dry_run = False
    world.stored.clear()
    assert ips_of(created(world, service("b", clusterIP="10.96.0.1")).obj) == ["10.96.0.1"]


@pytest.mark.spec("S-09")
def test_tcp_and_udp_of_one_port_share_a_node_port() -> None:
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    first, second = ports_of(created(World(), service(type="NodePort", ports=ports)).obj)
    assert first == second
    assert 30000 <= first <= 32767


@pytest.mark.spec("S-09")
def test_defaults() -> None:
    spec = created(World(), service(selector={"a": "b"})).obj["spec"]
    assert spec["ipFamilies"] == ["IPv4"]
    assert spec["ipFamilyPolicy"] == "SingleStack"
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["sessionAffinity"] == "None"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    headless = created(World(), service(clusterIP="None")).obj["spec"]
    assert headless["ipFamilies"] == ["IPv4", "IPv6"]
    assert headless["ipFamilyPolicy"] == "RequireDualStack"
    alias = created(World(), {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert set(alias.obj["spec"]) == {"type", "externalName", "sessionAffinity"}


@pytest.mark.spec("S-09")
def test_an_address_stays_except_by_way_of_a_mere_alias() -> None:
    world = World()
    before = created(world, service(clusterIP="10.96.0.9")).obj
    refused = world.patch("", "Service", "s", {"spec": {"clusterIP": "10.96.0.10"}})
    assert refused.texts == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.10"]: may not change once set']
    alias = world.patch("", "Service", "s", {"spec": {"type": "ExternalName", "externalName": "a.b"}}).obj
    assert not alias["spec"].keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
    back = world.patch("", "Service", "s", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert ips_of(back.obj)
    assert before["spec"]["clusterIP"] == "10.96.0.9"


@pytest.mark.spec("S-09")
def test_node_ports_are_kept_by_name_and_dropped_with_the_type() -> None:
    world = World()
    created(world, service(type="NodePort", ports=[{"name": "a", "port": 80, "nodePort": 30080}]))
    kept = world.patch("", "Service", "s", {"spec": {"ports": [{"name": "a", "port": 81}]}})
    assert ports_of(kept.obj) == [30080]
    plain = world.patch("", "Service", "s", {"spec": {"type": "ClusterIP"}})
    assert not plain.errors
    assert ports_of(plain.obj) == []
    assert "externalTrafficPolicy" not in plain.obj["spec"]


@pytest.mark.spec("S-09")
def test_refusals_name_the_port_range() -> None:
    refused = World().create("", "Service", service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]))
    assert refused.refusal.endswith("The range of valid ports is 30000-32767")
