"""The resolv.conf of pods, by policy."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.podnet.resolving import resolv_conf

pytestmark = pytest.mark.spec("S-53")

MACHINE = "# made by a program\nnameserver 192.0.2.1\nsearch example.org .\noptions timeout:2 rotate\n"
CLUSTER = "shop.svc.cluster.local svc.cluster.local cluster.local"
CONFIG = {
    "nameservers": ["192.0.2.9", "10.244.0.1"],
    "searches": ["more.example", "cluster.local"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
}


def text(policy: str | None, config: dict[str, Any] | None = None) -> list[str]:
    spec: dict[str, Any] = {"containers": [], "dnsPolicy": policy, "dnsConfig": config}
    pod = from_dict(Pod, {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
    return resolv_conf(pod, "10.244.0.1", MACHINE).splitlines()


@pytest.mark.parametrize("policy", ["ClusterFirst", "ClusterFirstWithHostNet", None])
def test_the_clusters_names_come_first(policy: str | None) -> None:
    assert text(policy) == ["nameserver 10.244.0.1", f"search {CLUSTER} example.org", "options ndots:5"]


def test_by_default_it_is_the_machines() -> None:
    assert text("Default") == ["nameserver 192.0.2.1", "search example.org", "options timeout:2 rotate"]


def test_a_pod_may_say_all_of_it() -> None:
    expected = ["nameserver 192.0.2.9", "nameserver 10.244.0.1", "search more.example cluster.local"]
    assert text("None", CONFIG) == [*expected, "options ndots:2 edns0"]


def test_what_a_pod_says_comes_last_and_its_options_win() -> None:
    expected = ["nameserver 10.244.0.1", "nameserver 192.0.2.9", f"search {CLUSTER} example.org more.example"]
    assert text("ClusterFirst", CONFIG) == [*expected, "options ndots:2 edns0"]


def test_no_more_servers_than_resolvers_read() -> None:
    many = text("None", {"nameservers": [f"192.0.2.{number}" for number in range(1, 6)]})
    assert many == ["nameserver 192.0.2.1", "nameserver 192.0.2.2", "nameserver 192.0.2.3"]
