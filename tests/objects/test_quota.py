"""The arithmetic of quotas: what pods ask for, sums, names and scopes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.amounts import total
from konverge.objects.quantity import Quantity
from konverge.objects.quota import usage
from konverge.objects.quota.scopes import Scope, claim_in_scope, pod_in_scope, scopes_of

pytestmark = [pytest.mark.spec("R-43")]

amounts = st.integers(0, 5000).map(lambda number: Quantity(f"{number}m"))


def pod(cpus: list[Quantity], init: list[tuple[Quantity, bool]]) -> dict[str, Any]:
    def container(cpu: Quantity, sidecar: bool = False) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": str(cpu)}}, **({"restartPolicy": "Always"} if sidecar else {})}

    return {
        "spec": {
            "containers": [container(c) for c in cpus],
            "initContainers": [container(*arguments) for arguments in init],
        }
    }


@given(st.lists(amounts, min_size=1, max_size=4), st.lists(st.tuples(amounts, st.booleans()), max_size=4))
def test_a_pod_asks_for_the_most_that_it_needs_at_one_time(
    cpus: list[Quantity], init: list[tuple[Quantity, bool]]
) -> None:
    milli = [cpu.milli for cpu in cpus]
    moments = [sum(milli) + sum(cpu.milli for cpu, sidecar in init if sidecar)]
    for position, (cpu, _) in enumerate(init):
        moments.append(cpu.milli + sum(other.milli for other, sidecar in init[:position] if sidecar))
    assert usage.of_pod(pod(cpus, init))["requests.cpu"].milli == max(moments)


@given(st.lists(st.lists(amounts, min_size=1, max_size=3), max_size=5))
def test_the_total_is_the_sum_of_all(pods: list[list[Quantity]]) -> None:
    sums = total([usage.of_pod(pod(cpus, [])) for cpus in pods], ["pods", "requests.cpu", "limits.memory"])
    assert sums["pods"] == Quantity(len(pods))
    assert sums["requests.cpu"].milli == sum(cpu.milli for cpus in pods for cpu in cpus)
    assert sums["limits.memory"] == Quantity("0")


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("pods", "pod"), ("count/pods", "pod"), ("cpu", "pod"), ("limits.memory", "pod"), ("hugepages-2Mi", "pod"),
        ("requests.hugepages-2Mi", "pod"), ("requests.example.com/gpu", "pod"), ("requests.storage", "claim"),
        ("x.storageclass.storage.k8s.io/requests.storage", "claim"), ("services.nodeports", "service"),
        ("count/services", "service"), ("count/persistentvolumeclaims", "claim"), ("count/deployments.apps", ""),
        ("configmaps", ""), ("count/x.example.com", ""),
    ],
)  # fmt: skip
def test_each_name_is_about_one_kind(name: str, about: str) -> None:
    tests = {"pod": usage.is_pod_name, "service": usage.is_service_name, "claim": usage.is_claim_name}
    assert [kind for kind, test in tests.items() if test(name)] == ([about] if about else [])


def test_who_should_have_ended_uses_only_a_place() -> None:
    running = pod([Quantity("1")], [])
    going = {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    assert usage.of_pod({**running, "metadata": going}) == {"count/pods": Quantity("1")}
    assert usage.of_pod({**running, "status": {"phase": "Failed"}}) == {"count/pods": Quantity("1")}


def test_a_balancer_uses_node_ports_unless_told_not_to() -> None:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 443, "nodePort": 30443}]}
    assert usage.of_service({"spec": spec})["services.nodeports"] == Quantity(2)
    without = {**spec, "allocateLoadBalancerNodePorts": False}
    assert usage.of_service({"spec": without})["services.nodeports"] == Quantity(1)


@pytest.mark.parametrize(
    ("operator", "meant"), [("Exists", ["a", "b"]), ("DoesNotExist", [""]), ("In", ["a"]), ("NotIn", ["b", ""])]
)
def test_scopes_by_class(operator: str, meant: list[str]) -> None:
    term = {"scopeName": "PriorityClass", "operator": operator, **({"values": ["a"]} if "In" in operator else {})}
    (scope,) = scopes_of({"spec": {"scopeSelector": {"matchExpressions": [term]}}})
    names = ["a", "b", ""]
    assert [name for name in names if pod_in_scope(scope, {"spec": {"priorityClassName": name}})] == meant


def test_a_claim_is_in_no_scope_but_that_of_its_class() -> None:
    claim = {"spec": {"volumeAttributesClassName": "gold"}}
    assert claim_in_scope(Scope("VolumeAttributesClass"), claim)
    assert not claim_in_scope(Scope("BestEffort"), claim)
