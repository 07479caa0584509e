"""The node ports of services."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.core.service.allocation import ports_of
from tests.apiserver.kinds.core.service.services import created, service
from tests.apiserver.kinds.harness import World


@pytest.mark.spec("S-09")
def test_tcp_and_udp_of_one_port_share_a_node_port() -> None:
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    first, second = ports_of(created(World(), service(type="NodePort", ports=ports)).obj)
    assert first == second
    assert 30000 <= first <= 32767


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
