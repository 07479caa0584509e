"""The cluster IPs of services."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.core.service.allocation import ips_of
from tests.apiserver.kinds.core.service.services import created, service
from tests.apiserver.kinds.harness import World


@pytest.mark.spec("S-09")
def test_a_cluster_ip_is_kept_until_the_service_becomes_an_external_name() -> None:
    world = World()
    before = created(world, service(clusterIP="10.96.0.9")).obj
    refused = world.patch("", "Service", "s", {"spec": {"clusterIP": "10.96.0.10"}})
    assert refused.texts == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.10"]: may not change once set']
    alias = world.patch("", "Service", "s", {"spec": {"type": "ExternalName", "externalName": "a.b"}}).obj
    assert not alias["spec"].keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
    back = world.patch("", "Service", "s", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert ips_of(back.obj)
    assert before["spec"]["clusterIP"] == "10.96.0.9"
