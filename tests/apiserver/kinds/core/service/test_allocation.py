"""Cluster IPs and node ports: which are taken, and when they are free."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.core.service.allocation import ips_of, ports_of
from tests.apiserver.kinds.core.service.services import AllocatingWorld, created, service
from tests.apiserver.kinds.harness import NAMESPACE


@pytest.mark.spec("S-09")
def test_each_service_gets_an_address_of_its_own() -> None:
    world = AllocatingWorld()
    first, second = (created(world, service(name)).obj for name in ("a", "b"))
    assert {*ips_of(first), *ips_of(second)} == {"10.96.0.1", "10.96.0.2"}
    refused = world.create("", "Service", service("c"))
    assert refused.refusal == 'Internal error occurred: failed to allocate a serviceIP for Service "c": range is full'


@pytest.mark.spec("S-09")
def test_a_claim_of_a_request_that_failed_is_void() -> None:
    world = AllocatingWorld()
    bad = service("a", clusterIP="10.96.0.1", sessionAffinity="Odd")
    assert world.create("", "Service", bad).errors
    assert ips_of(created(world, service("b", clusterIP="10.96.0.1")).obj) == ["10.96.0.1"]
    taken = world.create("", "Service", service("c", clusterIP="10.96.0.1"))
    assert taken.refusal.endswith("failed to allocate IP 10.96.0.1: provided IP is already allocated")


@pytest.mark.spec("S-09")
def test_what_a_removed_service_had_is_free_again() -> None:
    world = AllocatingWorld()
    gone = created(world, service("a", type="NodePort", clusterIP="10.96.0.1", ports=[{"port": 1, "nodePort": 30001}]))
    del world.stored["", "services", NAMESPACE, "a"]
    world.service_allocators.release(gone.obj)
    again = created(world, service("b", type="NodePort", clusterIP="10.96.0.1", ports=[{"port": 1, "nodePort": 30001}]))
    assert ports_of(again.obj) == [30001]


@pytest.mark.spec("S-09", "S-10")
def test_a_dry_run_allocates_nothing() -> None:
    world = AllocatingWorld()
    world.dry_run = True
    outcome = world.create("", "Service", service("a", type="NodePort"))
    assert outcome.obj["spec"]["clusterIP"] == "10.96.0.0"
    assert ports_of(outcome.obj) == [32769]
    world.dry_run = False
    world.stored.clear()
    assert ips_of(created(world, service("b", clusterIP="10.96.0.1")).obj) == ["10.96.0.1"]
