"""The arrangement of endpoints over slices and of addresses over subsets, for any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.kube.endpoints import members
from konverge.kube.endpoints.slices import arrange, identity
from konverge.kube.endpoints.subsets import of_service, repack, truncate
from konverge.objects.kinds.core_v1 import (
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServiceSpec,
)
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointConditions

pytestmark = pytest.mark.spec("R-38")

SIZE = 4

numbers = st.integers(0, 30)
desired = st.dictionaries(numbers, st.booleans(), max_size=25)


def endpoint(number: int, ready: bool) -> Endpoint:
    return Endpoint(addresses=[f"10.0.0.{number}"], conditions=EndpointConditions(ready=ready))


@st.composite
def slices(draw: st.DrawFn) -> dict[str, list[Endpoint]]:
    present = list(draw(desired).items())
    return {
        f"s{start}": [endpoint(*one) for one in present[start : start + SIZE]] for start in range(0, len(present), SIZE)
    }


@given(slices(), desired)
def test_every_endpoint_is_in_exactly_one_slice(existing: dict[str, list[Endpoint]], wanted: dict[int, bool]) -> None:
    wish = [endpoint(*one) for one in wanted.items()]
    plan = arrange(existing, wish, SIZE)
    after = [*{**existing, **plan.changed}.values(), *plan.made]
    placed = [one for some in after for one in some]
    assert sorted(map(identity, placed)) == sorted(map(identity, wish))
    assert all(one in wish for one in placed)
    assert all(len(some) <= SIZE for some in after)
    assert all(plan.made)


@given(slices(), desired)
def test_a_second_look_changes_nothing(existing: dict[str, list[Endpoint]], wanted: dict[int, bool]) -> None:
    wish = [endpoint(*one) for one in wanted.items()]
    plan = arrange(existing, wish, SIZE)
    after = {name: some for name, some in {**existing, **plan.changed}.items() if some}
    after |= {f"n{number}": some for number, some in enumerate(plan.made)}
    again = arrange(after, wish, SIZE)
    assert (again.changed, again.made) == ({}, [])


@given(slices())
def test_one_more_is_one_write(existing: dict[str, list[Endpoint]]) -> None:
    present = [one for some in existing.values() for one in some]
    plan = arrange(existing, [*present, endpoint(99, True)], SIZE)
    assert len(plan.changed) + len(plan.made) == 1


ports = st.builds(
    lambda number, protocol: EndpointPort(name=f"p{number}", port=number, protocol=protocol),
    st.integers(1, 3), st.sampled_from(["TCP", "UDP"]),
)  # fmt: skip
hosts = st.lists(numbers.map(lambda number: EndpointAddress(ip=f"10.0.0.{number}")), max_size=5)
subsets = st.lists(
    st.builds(
        lambda up, down, offered: EndpointSubset(addresses=up, not_ready_addresses=down, ports=offered),
        hosts, hosts, st.lists(ports, max_size=3),
    ),
    max_size=5,
)  # fmt: skip

Port = tuple[str | None, int | None, str | None]
Facts = dict[tuple[str, Port], bool]


def facts(layout: list[EndpointSubset]) -> Facts:
    """Each address with each port, and whether it is ready: not ready wins."""
    found: Facts = {}
    for subset in layout:
        offered: list[Port] = [(port.name, port.port, port.protocol) for port in subset.ports]
        for what in offered or [(None, None, None)]:
            for one in subset.addresses:
                found[one.ip, what] = found.get((one.ip, what), True)
            for one in subset.not_ready_addresses:
                found[one.ip, what] = False
    return found


@given(subsets)
def test_repacking_says_the_same_and_only_once(layout: list[EndpointSubset]) -> None:
    packed = repack(layout)
    assert facts(packed) == facts(layout)
    # Addresses without a port are apart from those with ports.
    states = [(bool(one.ports), str(one.addresses), str(one.not_ready_addresses)) for one in packed]
    assert len(set(states)) == len(states)
    assert repack(packed) == packed
    assert repack(reversed(layout)) == packed


@given(subsets, st.integers(0, 8))
def test_truncation_keeps_the_ready_first(layout: list[EndpointSubset], capacity: int) -> None:
    packed = repack(layout)
    ready = sum(len(s.addresses) for s in packed)
    total = ready + sum(len(s.not_ready_addresses) for s in packed)
    cut = truncate(packed, capacity)
    assert cut == (total > capacity)
    left = sum(len(s.addresses) for s in packed)
    assert left == min(ready, capacity)
    assert left + sum(len(s.not_ready_addresses) for s in packed) == min(total, capacity)


def test_each_family_has_its_addresses() -> None:
    service = Service(
        metadata=ObjectMeta(name="web"),
        spec=ServiceSpec(cluster_ip="None", ip_families=["IPv6", "IPv4"], selector={"app": "web"}),
    )
    status = PodStatus(
        pod_ip="10.0.0.1", pod_ips=[PodIP(ip="10.0.0.1"), PodIP(ip="fd00::0:1")],
        conditions=[PodCondition(type="Ready", status="True")],
    )  # fmt: skip
    pod = Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=[]), status=status)
    assert members.families(service) == ["IPv6", "IPv4"]
    assert [members.addresses(pod, family) for family in members.families(service)] == [["fd00::1"], ["10.0.0.1"]]
    assert [one.ip for one in of_service(service, [pod])[0].addresses] == ["fd00::1"]
