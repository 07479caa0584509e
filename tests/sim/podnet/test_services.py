"""What is behind a Service's address."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.podnet.services import Behind, Front, behind

pytestmark = pytest.mark.spec("S-53")

PORTS = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]


def service(**spec: Any) -> Service:
    whole = {"clusterIP": "10.96.0.7", "ports": PORTS, **spec}
    return from_dict(Service, {"metadata": {"name": "web", "namespace": "shop"}, "spec": whole})


def endpoints(*entries: tuple[str, dict[str, bool]], of: str = "web", namespace: str = "shop") -> EndpointSlice:
    meta = {"name": "x", "namespace": namespace, "labels": {"kubernetes.io/service-name": of}}
    listed = [{"addresses": [address], "conditions": conditions} for address, conditions in entries]
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
