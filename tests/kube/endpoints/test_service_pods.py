"""The addresses of a pod by family."""

from __future__ import annotations

import pytest

from konverge import ObjectMeta
from konverge.kube.endpoints import service_pods
from konverge.kube.endpoints.subsets import of_service
from konverge.objects.kinds.core_v1 import (
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServiceSpec,
)

pytestmark = pytest.mark.spec("R-38")


def test_addresses_are_chosen_by_family() -> None:
    service = Service(
        metadata=ObjectMeta(name="web"),
        spec=ServiceSpec(cluster_ip="None", ip_families=["IPv6", "IPv4"], selector={"app": "web"}),
    )
    status = PodStatus(
        pod_ip="10.0.0.1", pod_ips=[PodIP(ip="10.0.0.1"), PodIP(), PodIP(ip="fd00::0:1")],
        conditions=[PodCondition(type="Ready", status="True")],
    )  # fmt: skip
    pod = Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=[]), status=status)
    assert service_pods.families(service) == ["IPv6", "IPv4"]
    assert [service_pods.addresses(pod, family) for family in service_pods.families(service)] == [
        ["fd00::1"],
        ["10.0.0.1"],
    ]
    assert [address.ip for address in of_service(service, [pod])[0].addresses] == ["fd00::1"]
