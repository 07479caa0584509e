"""How others reach the servers: ports, names, node ports, the Ingress, the ServiceMonitor."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import to_dict
from konverge.operators.nacos import names
from konverge.operators.nacos.children.monitoring import service_monitor, wants_monitor
from konverge.operators.nacos.children.services import ingress, services, wants_ingress
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, STANDALONE

pytestmark = pytest.mark.spec("N-07", "N-08")
THIRD: dict[str, Any] = {**EMBEDDED, "image": "n:v3.0.3"}
NUMBERS = {"client": 8848, "rpc": 7848, "new-rpc": 9848, "cluster-rpc": 9849, "console": 8080}
SECOND = ["client", "rpc", "new-rpc"]
SELECTOR = {"app": "nacos", "middleware": "nacos", "component": "nacos"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (STANDALONE, {"nacos": SECOND}),
        ({"image": "n:v3.0.3"}, {"nacos": [*SECOND, "cluster-rpc", "console"]}),
        (EMBEDDED, {"nacos-headless": SECOND, "nacos-client": ["client", "new-rpc"]}),
        (
            THIRD,
            {"nacos-headless": [*SECOND, "cluster-rpc", "console"], "nacos-client": ["client", "new-rpc", "console"]},
        ),
    ],
)
def test_services_and_their_ports(spec: dict[str, Any], expected: dict[str, list[str]]) -> None:
    made = services(desired_of(spec))
    assert {item.metadata.name: [port.name for port in item.spec.ports] for item in made} == expected
    for item in made:
        assert item.spec.selector == SELECTOR
        assert item.spec.type == "ClusterIP"
        for port in item.spec.ports:
            assert (port.port, port.target_port, port.protocol) == (NUMBERS[port.name or ""],) * 2 + ("TCP",)
            assert port.node_port is None


def test_servers_find_each_other_before_they_are_ready() -> None:
    headless, client = services(desired_of(EMBEDDED))
    (standalone,) = services(desired_of(STANDALONE))
    assert (headless.spec.cluster_ip, headless.spec.publish_not_ready_addresses) == ("None", True)
    assert (client.spec.cluster_ip, client.spec.publish_not_ready_addresses) == (None, None)
    assert standalone.spec.publish_not_ready_addresses is True


def test_the_service_of_clients_is_exposed() -> None:
    options = {
        "type": "LoadBalancer",
        "annotations": {"a": "b"},
        "loadBalancerClass": "metal",
        "nodePorts": {"client": 30848, "new-rpc": 31848},
    }
    headless, client = services(desired_of({**EMBEDDED, "service": options}))
    assert (client.spec.type, client.spec.load_balancer_class) == ("LoadBalancer", "metal")
    assert client.metadata.annotations == {"note": "kept", "a": "b"}
    assert {port.name: port.node_port for port in client.spec.ports} == {"client": 30848, "new-rpc": 31848}
    assert headless.spec.type == "ClusterIP"
    assert headless.metadata.annotations == {"note": "kept"}
    options["nodePorts"] = {"rpc": 30848}
    _, client = services(desired_of({**EMBEDDED, "service": options}))
    assert {port.node_port for port in client.spec.ports} == {None}


@pytest.mark.parametrize(
    ("spec", "options", "path", "port", "service"),
    [
        (EMBEDDED, {}, "/nacos", "client", "nacos-client"),
        (THIRD, {}, "/", "console", "nacos-client"),
        (STANDALONE, {}, "/nacos", "client", "nacos"),
        (EMBEDDED, {"path": "/mine"}, "/mine", "client", "nacos-client"),
    ],
)
def test_the_ingress_leads_to_the_console(
    spec: dict[str, Any], options: dict[str, Any], path: str, port: str, service: str
) -> None:
    desired = desired_of({**spec, "ingress": {"enabled": True, **options}})
    assert wants_ingress(desired)
    assert not wants_ingress(desired_of(spec))
    made = to_dict(ingress(desired))
    backend = {"service": {"name": service, "port": {"name": port}}}
    assert made["metadata"]["name"] == "nacos"
    assert made["spec"] == {"rules": [{"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}}]}


def test_what_the_user_says_about_the_ingress() -> None:
    options = {"enabled": True, "host": "h", "className": "c", "tlsSecretName": "t", "annotations": {"a": "b"}}
    made = to_dict(ingress(desired_of({**EMBEDDED, "ingress": options})))
    assert made["metadata"]["annotations"] == {"note": "kept", "a": "b"}
    assert made["spec"]["ingressClassName"] == "c"
    assert made["spec"]["rules"][0]["host"] == "h"
    assert made["spec"]["tls"] == [{"hosts": ["h"], "secretName": "t"}]
    every = to_dict(ingress(desired_of({**EMBEDDED, "ingress": {"enabled": True, "tlsSecretName": "t"}})))
    assert every["spec"]["tls"] == [{"secretName": "t"}]


@pytest.mark.parametrize(
    ("metrics", "monitor", "wanted"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_when_there_is_a_monitor(metrics: bool, monitor: bool, wanted: bool) -> None:
    spec = {**EMBEDDED, "metrics": {"enabled": metrics, "serviceMonitor": {"enabled": monitor}}}
    assert wants_monitor(desired_of(spec)) == wanted


@pytest.mark.parametrize(("spec", "front"), [(EMBEDDED, "nacos-client"), (STANDALONE, "nacos")])
def test_the_monitor_of_one_service(spec: dict[str, Any], front: str) -> None:
    options = {"enabled": True, "interval": "5s", "labels": {"release": "prometheus"}}
    made = service_monitor(desired_of({**spec, "metrics": {"enabled": True, "serviceMonitor": options}}))
    assert (made.api_version, made.kind) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert made.metadata.name == "nacos"
    assert made.metadata.labels == {"team": "a", "release": "prometheus", **SELECTOR}
    keep = {"sourceLabels": ["__meta_kubernetes_service_name"], "regex": front, "action": "keep"}
    endpoint = {"port": "client", "path": "/nacos/actuator/prometheus", "interval": "5s", "relabelings": [keep]}
    assert made.spec == {"selector": {"matchLabels": SELECTOR}, "endpoints": [endpoint]}


def test_names() -> None:
    assert [
        names.headless("n"),
        names.client("n"),
        names.front("n", cluster=True),
        names.front("n", cluster=False),
        names.auth_secret("n"),
        names.final_config("n"),
        names.mysql_init("n"),
        names.pod("n", 2),
        names.claim("n", 2),
        names.member("n", 2, "space", "corp.local"),
    ] == [
        "n-headless",
        "n-client",
        "n-client",
        "n",
        "n-auth",
        "n-final-config",
        "n-mysql-sql-init",
        "n-2",
        "db-n-2",
        "n-2.n-headless.space.svc.corp.local:8848",
    ]
    assert names.selector("n") == {"app": "n", "middleware": "nacos", "component": "nacos"}
