"""How addresses are grouped into subsets, for any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.endpoints.subsets import repack, truncate
from konverge.objects.kinds.core_v1 import (
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
)

pytestmark = pytest.mark.spec("R-38")


numbers = st.integers(0, 30)


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
    readiness: Facts = {}
    for subset in layout:
        offered: list[Port] = [(port.name, port.port, port.protocol) for port in subset.ports]
        for what in offered or [(None, None, None)]:
            for address in subset.addresses:
                readiness[address.ip, what] = readiness.get((address.ip, what), True)
            for address in subset.not_ready_addresses:
                readiness[address.ip, what] = False
    return readiness


@given(subsets)
def test_repacking_keeps_every_address_and_port_once(layout: list[EndpointSubset]) -> None:
    packed = repack(layout)
    assert facts(packed) == facts(layout)
    # Addresses without a port are apart from those with ports.
    states = [(bool(subset.ports), str(subset.addresses), str(subset.not_ready_addresses)) for subset in packed]
    assert len(set(states)) == len(states)
    assert repack(packed) == packed
    assert repack(reversed(layout)) == packed


@given(subsets, st.integers(0, 8))
def test_truncation_keeps_ready_addresses_first(layout: list[EndpointSubset], capacity: int) -> None:
    packed = repack(layout)
    ready = sum(len(s.addresses) for s in packed)
    total = ready + sum(len(s.not_ready_addresses) for s in packed)
    cut = truncate(packed, capacity)
    assert cut == (total > capacity)
    left = sum(len(s.addresses) for s in packed)
    assert left == min(ready, capacity)
    assert left + sum(len(s.not_ready_addresses) for s in packed) == min(total, capacity)
    assert all(s.addresses or s.not_ready_addresses for s in packed) or not cut, "none is left empty"
