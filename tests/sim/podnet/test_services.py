"""What is behind a Service's address."""

from __future__ import annotations

import socket
from ipaddress import IPv4Network
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ObjectReference, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.podnet.services import ANY, Behind, Front, behind, host_ports
from konverge.wire import routes

pytestmark = pytest.mark.spec("S-53")

PORTS = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]


def service(**spec: Any) -> Service:
    whole = {"clusterIP": "10.96.0.7", "ports": PORTS, **spec}
    return from_dict(Service, {"metadata": {"name": "web", "namespace": "shop"}, "spec": whole})


def endpoints(*entries: tuple[str, dict[str, bool]], of: str = "web", namespace: str = "shop") -> EndpointSlice:
    meta = {"name": "x", "namespace": namespace, "labels": {"kubernetes.io/service-name": of}}
    listed = [
        {"addresses": [address], "conditions": conditions, "nodeName": f"node-{address[-1]}"}
        for address, conditions in entries
    ]
    ports = [{"name": "http", "port": 8080}, {"name": "dns", "port": 5353, "protocol": "UDP"}]
    body = {"metadata": meta, "addressType": "IPv4", "endpoints": listed, "ports": ports}
    return from_dict(EndpointSlice, body)


READY = {"ready": True}
HTTP, DNS = Front("tcp", "10.96.0.7", 80), Front("udp", "10.96.0.7", 53)


def test_each_port_leads_to_its_target_at_ready_endpoints() -> None:
    slices = [endpoints(("10.244.0.3", READY), ("10.244.0.9", {"ready": False})), endpoints(("10.244.0.2", {}))]
    assert behind(service(), slices) == {
        HTTP: Behind((("10.244.0.2", 8080), ("10.244.0.3", 8080))),
        DNS: Behind((("10.244.0.2", 5353), ("10.244.0.3", 5353))),
    }


def test_others_endpoints_are_not_its_own() -> None:
    slices = [endpoints(("10.244.0.2", READY), of="other"), endpoints(("10.244.0.3", READY), namespace="elsewhere")]
    assert behind(service(), slices) == {}


def test_where_none_is_ready_those_that_still_serve_are_used() -> None:
    ending = {"ready": False, "serving": True, "terminating": True}
    slices = [endpoints(("10.244.0.2", ending), ("10.244.0.3", {"ready": False, "serving": False}))]
    assert behind(service(), slices)[HTTP].backends == (("10.244.0.2", 8080),)
    slices.append(endpoints(("10.244.0.4", READY)))
    assert behind(service(), slices)[HTTP].backends == (("10.244.0.4", 8080),)


def of(kind: str, *addresses: str) -> EndpointSlice:
    """Endpoints that say what they are."""
    made = endpoints(*[(address, READY) for address in addresses])
    for endpoint in made.endpoints:
        endpoint.target_ref = ObjectReference(kind=kind, namespace="shop", name="out")
    return made


async def nowhere(address: str, port: int) -> socket.socket:
    raise AssertionError("nothing connects here")


@pytest.mark.spec("S-80")
def test_a_pod_with_an_address_of_elsewhere_is_not_behind_a_service() -> None:
    addresses = ("10.244.0.2", "127.1.0.1", "192.168.1.1", "10.245.0.2")
    pods, machine = of("Pod", *addresses), of("Machine", "192.168.1.2")
    slices = [pods, machine, endpoints(("192.168.1.3", READY))]
    with routes.route(IPv4Network("10.244.0.0/16"), nowhere):
        found = behind(service(), slices)
        alone = behind(service(), [of("Pod", "192.168.1.1")])
    inside, written = [("10.244.0.2", 8080), ("127.1.0.1", 8080)], [("192.168.1.2", 8080), ("192.168.1.3", 8080)]
    assert found[HTTP].backends == (*inside, *written)
    assert alone == {}, "a Service with nothing else refuses"


@pytest.mark.parametrize(
    "spec",
    [
        {"clusterIP": "None"},
        {"clusterIP": ""},
        {"clusterIP": "fd00::1"},
        {"type": "ExternalName", "externalName": "example.org"},
    ],
)
def test_what_has_no_address_is_not_listened_for(spec: dict[str, Any]) -> None:
    assert behind(service(**spec), [endpoints(("10.244.0.2", READY))]) == {}


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, 0),
        ({"sessionAffinity": "ClientIP"}, 10800),
        ({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, 5),
    ],
)
def test_affinity(spec: dict[str, Any], seconds: int) -> None:
    assert behind(service(**spec), [endpoints(("10.244.0.2", READY))])[HTTP].affinity == seconds


@pytest.mark.spec("S-58")
@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_node_ports_are_fronts_of_each_node(kind: str) -> None:
    ports = [{**PORTS[0], "nodePort": 30080}, {**PORTS[1], "nodePort": 30053}]
    found = behind(service(type=kind, ports=ports), [endpoints(("10.244.0.2", READY))], ["node-1", "node-2"])
    assert {front for front in found if front.node} == {
        Front(protocol, ANY, port, node)
        for protocol, port in (("tcp", 30080), ("udp", 30053))
        for node in ("node-1", "node-2")
    }
    assert found[Front("udp", ANY, 30053, "node-1")] == found[DNS]


@pytest.mark.spec("S-58")
def test_a_service_without_them_has_none() -> None:
    ports = [{**PORTS[0], "nodePort": 30080}]
    assert not any(front.node for front in behind(service(ports=ports), [endpoints(("10.244.0.2", READY))], ["node-1"]))


@pytest.mark.spec("S-58")
def test_local_traffic_stays_on_the_node() -> None:
    ports = [{**PORTS[0], "nodePort": 30080}]
    local = service(type="NodePort", externalTrafficPolicy="Local", ports=ports)
    found = behind(local, [endpoints(("10.244.0.1", READY), ("10.244.0.2", READY))], ["node-1", "node-3"])
    assert found == {
        HTTP: Behind((("10.244.0.1", 8080), ("10.244.0.2", 8080))),
        Front("tcp", ANY, 30080, "node-1"): Behind((("10.244.0.1", 8080),)),
    }


@pytest.mark.spec("S-58")
def test_ports_of_the_node_that_a_pod_asks_for() -> None:
    ports = [
        {"containerPort": 8080, "hostPort": 80, "hostIP": "127.0.0.1"},
        {"containerPort": 5353, "hostPort": 53, "protocol": "UDP"},
        {"containerPort": 9, "hostPort": 9, "protocol": "SCTP"},
        {"containerPort": 7},
    ]
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "ports": ports}]}
    pod = from_dict(Pod, {"metadata": {"name": "web"}, "spec": spec})
    assert host_ports(pod, "10.244.0.5") == {
        Front("tcp", "127.0.0.1", 80, "node-1"): Behind((("10.244.0.5", 8080),)),
        Front("udp", ANY, 53, "node-1"): Behind((("10.244.0.5", 5353),)),
    }


@pytest.mark.spec("S-79")
@pytest.mark.parametrize(
    "host", ["\0", "ü" * 70, "x" * 70_000, "localhost", "::1"], ids=["NUL", "text", "long", "name", "IPv6"]
)
def test_a_host_ip_that_is_no_address_is_passed_over_with_a_warning(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    ports = [{"containerPort": 80, "hostPort": 80, "hostIP": host}, {"containerPort": 81, "hostPort": 81}]
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "ports": ports}]}
    pod = from_dict(Pod, {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
    assert list(host_ports(pod, "10.244.0.5")) == [Front("tcp", ANY, 81, "node-1")]
    [said] = [record.getMessage() for record in caplog.records]
    assert "shop/web" in said
    assert repr(host)[:50] in said
    assert len(said) < 200
    assert "\0" not in said


def test_ports_of_one_name_differ_by_their_protocols() -> None:
    ports = [{"name": "dns", "port": 53}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    assert list(behind(service(ports=ports), [endpoints(("10.244.0.2", READY))])) == [DNS]
