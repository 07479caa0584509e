"""What a Service sees of pods, and how slices are planned: case by case."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.endpoints import controller as endpoints
from konverge.kube.endpoints import publish, service_pods
from konverge.kube.endpoints.subsets import of_service, repack
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import EndpointSubset, Pod, Service, ServicePort
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice

pytestmark = pytest.mark.spec("R-38")


def service(name: str = "web", **spec: Any) -> Service:
    ports = [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]
    whole = {"selector": {"app": "web"}, "clusterIP": "10.96.0.1", "ports": ports, **spec}
    return from_dict(Service, {"metadata": {"name": name, "namespace": "default"}, "spec": whole})


def pod(name: str, *ips: str, ready: bool = True, phase: str = "Running", **more: Any) -> Pod:
    spec = {"containers": [], "nodeName": "n1", **more.pop("spec", {})}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": more.pop("since", None)}
    status = {"phase": phase, "conditions": [condition], "podIPs": [{"ip": ip} for ip in ips]}
    status |= {"podIP": ips[0]} if ips else {}
    metadata = {"name": name, "uid": name, "namespace": "default", "labels": {"app": "web"}, **more}
    return from_dict(Pod, {"metadata": metadata, "spec": spec, "status": status})


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("seen", "always", "with_terminating"),
    [
        (pod("a", "10.0.0.1"), True, True),
        (pod("a", "10.0.0.1", ready=False), True, True),
        (pod("a", "10.0.0.1", phase="Succeeded"), False, False),
        (pod("a", "10.0.0.1", phase="Failed"), False, False),
        (pod("a"), False, False),
        (pod("a", "10.0.0.1", **GOING), False, True),
        (pod("a", "10.0.0.1", phase="Failed", **GOING), False, False),
    ],
)
def test_which_pods_are_reachable(seen: Pod, always: bool, with_terminating: bool) -> None:
    assert service_pods.is_reachable(seen, terminating=False) is always
    assert service_pods.is_reachable(seen, terminating=True) is with_terminating


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ipFamilies": ["IPv6", "IPv4"]}, ["IPv6", "IPv4"]),
        ({}, ["IPv4"]),
        ({"clusterIP": "fd00::1"}, ["IPv6"]),
        ({"clusterIP": None}, ["IPv4"]),
        ({"clusterIP": "None"}, ["IPv4"]),
    ],
)
def test_the_address_families_of_a_service(spec: dict[str, Any], expected: list[str]) -> None:
    assert service_pods.families(service(**spec)) == expected


@pytest.mark.parametrize(("ip", "headless"), [("None", True), ("", True), (None, True), ("10.96.0.1", False)])
def test_a_headless_service_has_no_address(ip: str | None, headless: bool) -> None:
    assert service_pods.is_headless(service(clusterIP=ip)) is headless


def test_a_pod_has_a_name_in_the_service_of_its_subdomain() -> None:
    named = pod("a", "10.0.0.1", spec={"hostname": "a-0", "subdomain": "web"})
    assert service_pods.hostname(named, service()) == "a-0"
    assert service_pods.hostname(named, service("other")) is None
    assert service_pods.hostname(pod("a", "10.0.0.1", spec={"subdomain": "web"}), service()) is None
    assert service_pods.hostname(pod("a", "10.0.0.1", spec={"hostname": "a-0"}), service()) is None


@pytest.mark.parametrize(
    ("target", "protocol", "expected"),
    [
        (8080, "TCP", 8080),
        ("http", "TCP", 81),
        ("http", None, 81),
        ("http", "UDP", 82),
        ("side", "TCP", 83),
        ("init", "TCP", None),
        ("none", "TCP", None),
    ],
)
def test_a_port_is_a_number_or_looked_up_by_name(target: Any, protocol: str | None, expected: int | None) -> None:
    ports = [{"name": "http", "containerPort": 82, "protocol": "UDP"}, {"name": "http", "containerPort": 81}]
    inits = [
        {"name": "i", "ports": [{"name": "init", "containerPort": 84}]},
        {"name": "s", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 83}]},
    ]
    seen = pod("a", "10.0.0.1", spec={"containers": [{"name": "main", "ports": ports}], "initContainers": inits})
    port = from_dict(ServicePort, {"port": 80, "targetPort": target, "protocol": protocol})
    assert service_pods.port_number(seen, port) == expected


def addresses(subsets: list[EndpointSubset]) -> list[tuple[list[str], list[str], list[int]]]:
    return [
        ([a.ip for a in s.addresses], [a.ip for a in s.not_ready_addresses], [port.port for port in s.ports])
        for s in subsets
    ]


def test_the_subsets_of_a_service() -> None:
    pods = [
        pod("ended", "10.0.0.9", phase="Failed"), pod("other", "fd00::1"), pod("b", "10.0.0.2", ready=False),
        pod("a", "10.0.0.1"), pod("going", "10.0.0.3", **GOING),
    ]  # fmt: skip
    assert addresses(of_service(service(), pods)) == [(["10.0.0.1"], ["10.0.0.2"], [8080])]
    published = service(publishNotReadyAddresses=True)
    assert addresses(of_service(published, pods)) == [(["10.0.0.1", "10.0.0.2", "10.0.0.3"], [], [8080])]
    assert addresses(of_service(service(ports=[], clusterIP="None"), pods)) == [(["10.0.0.1"], ["10.0.0.2"], [])]
    assert of_service(service(ports=[]), pods) == []
    ports = [
        {"name": "a", "port": 1, "targetPort": 11, "protocol": "UDP", "appProtocol": "h2c"},
        {"name": "b", "port": 2, "targetPort": "none"},
    ]
    (subset,) = of_service(service(ports=ports), [pods[3]])
    assert [to_dict(port) for port in subset.ports] == [
        {"name": "a", "port": 11, "protocol": "UDP", "appProtocol": "h2c"}
    ]
    (address,) = subset.addresses
    assert (address.ip, address.node_name, address.hostname) == ("10.0.0.1", "n1", None)
    reference = {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"}
    assert to_dict(address.target_ref) == reference


def test_the_same_address_of_two_pods_is_there_twice() -> None:
    twins = [pod("a", "10.0.0.1"), pod("b", "10.0.0.1")]
    (subset,) = of_service(service(), twins)
    assert [address.target_ref.uid for address in subset.addresses if address.target_ref] == ["a", "b"]
    ordered = of_service(service(ports=[{"port": 1, "targetPort": 90}, {"port": 2, "targetPort": 20}]), twins[:1])
    assert sorted(port.port for port in ordered[0].ports) == [20, 90]
    first, second = repack(
        [
            from_dict(EndpointSubset, {"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 9}]}),
            from_dict(EndpointSubset, {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 10}]}),
        ]
    )
    assert (first.ports[0].port, second.ports[0].port) == (9, 10)


# ------------------------------------------------------------------ plans of slices


def groups(**by_port: list[str]) -> publish.Groups:
    """`groups(p80=["10.0.0.1"])`"""
    made = publish.Groups("IPv4")
    for name, ips in by_port.items():
        group = made.open([EndpointPort(name="", port=int(name[1:]), protocol="TCP")])
        group += [Endpoint(addresses=[ip]) for ip in ips]
    return made


def slice_(name: str, port: int | None, *ips: str) -> EndpointSlice:
    ports = [] if port is None else [EndpointPort(name="", port=port, protocol="TCP")]
    made = [Endpoint(addresses=[ip]) for ip in ips]
    return EndpointSlice(metadata=ObjectMeta(name=name), address_type="IPv4", ports=ports, endpoints=made)


def planned(existing: list[EndpointSlice], wanted: publish.Groups, *, placeholder: bool = True) -> dict[str, Any]:
    steps = publish.plan(existing, wanted, placeholder=placeholder)

    def shown(content: publish.Content) -> str:
        ports = "/".join(str(port.port) for port in content[0])
        return f"{ports}: {' '.join(endpoint.addresses[0] for endpoint in content[1])}".strip()

    result = {
        "create": [shown(content) for content in steps.created],
        "update": {name: shown(content) for name, content in steps.updated.items()},
        "delete": steps.deleted,
    }
    return {name: value for name, value in result.items() if value}


@pytest.mark.parametrize(
    ("existing", "wanted", "expected"),
    [
        ([], groups(p80=["1"]), {"create": ["80: 1"]}),
        ([], groups(), {"create": [":"]}),
        ([], groups(p80=[]), {"create": [":"]}),
        ([slice_("a", None)], groups(), {"update": {"a": ":"}}),
        ([slice_("a", 80, "1")], groups(p80=["1"]), {}),
        ([slice_("a", 80, "1")], groups(p80=["1", "2"]), {"update": {"a": "80: 1 2"}}),
        ([slice_("a", 80, "1", "2")], groups(p80=["2"]), {"update": {"a": "80: 2"}}),
        ([slice_("a", 80, "1")], groups(p80=[]), {"update": {"a": ":"}}),
        ([slice_("a", 80, "1")], groups(p81=["1"]), {"update": {"a": "81: 1"}}),
        ([slice_("a", 80, "1"), slice_("b", 81, "1")], groups(p81=["1"]), {"delete": ["a"]}),
        ([slice_("a", 80, "1"), slice_("b", 80, "2")], groups(p80=["1"]), {"delete": ["b"]}),
        ([slice_("a", 80, "1"), slice_("b", 81, "2")], groups(p82=["3"]), {"update": {"a": "82: 3"}, "delete": ["b"]}),
    ],
)
def test_slices_are_created_updated_and_deleted(
    existing: list[EndpointSlice], wanted: publish.Groups, expected: dict[str, Any]
) -> None:
    assert planned(existing, wanted) == expected


def test_without_a_placeholder_no_slice_is_left() -> None:
    assert planned([], groups(), placeholder=False) == {}
    assert planned([slice_("a", 80, "1")], groups(), placeholder=False) == {"delete": ["a"]}


def test_slices_that_change_anyway_are_filled_first_and_the_fullest_that_has_room_else() -> None:
    def some(*numbers: int) -> list[Endpoint]:
        return [Endpoint(addresses=[str(number)]) for number in numbers]

    existing = {"full": some(1, 2, 3), "half": some(4, 5), "low": some(6), "broken": some(7, 99)}
    desired = some(1, 2, 3, 4, 5, 6, 7)
    plan = publish.arrange(existing, [*desired, *some(8)], 3)
    assert (plan.changed, plan.created) == ({"broken": some(7, 8)}, [])
    plan = publish.arrange({name: existing[name] for name in ("full", "half", "low")}, [*some(1, 2, 3, 4, 5, 6, 8)], 3)
    assert (plan.changed, plan.created) == ({"half": some(4, 5, 8)}, [])
    plan = publish.arrange(existing, [*desired, *some(*range(10, 17))], 3)
    assert plan.changed == {"broken": some(7, 10, 11)}
    assert plan.created == [some(12, 13, 14), some(15, 16)]
    both = publish.arrange({"a": some(1, 98), "b": some(2, 3, 99)}, some(1, 2, 3, 4), 3)
    assert both.changed == {"a": some(1), "b": some(2, 3, 4)}


def test_an_endpoint_is_the_same_while_its_conditions_change() -> None:
    def made(**fields: Any) -> publish.Identity:
        return publish.identity(from_dict(Endpoint, {"addresses": ["b", "a"], **fields}))

    target = {"namespace": "n", "name": "p", "uid": "1"}
    assert made(targetRef=target) == made(targetRef={**target, "uid": "2"}, conditions={"ready": True})
    assert made() == publish.identity(Endpoint(addresses=["a", "b"]))
    different = {made(), made(hostname="h"), made(targetRef=target), made(targetRef={**target, "name": "q"})}
    assert len(different | {made(targetRef={**target, "namespace": "m"})}) == 5


def test_the_time_of_a_change_is_that_of_the_oldest_one_not_yet_seen() -> None:
    triggers, web = publish.Triggers(), service()
    web.metadata.creation_timestamp = "T0"
    old = [pod("a", "1", since="T1"), pod("b", "2", since="T2"), pod("c", "3")]
    assert triggers.changed(web, old) == "T0"
    assert triggers.changed(web, old) is None
    assert (
        triggers.changed(web, [pod("a", "1", since="T5"), pod("b", "2", since="T4"), pod("d", "3", since="T6")]) == "T4"
    )
    assert triggers.changed(web, [pod("a", "1", since="T3")]) is None
    assert triggers.changed(service("other"), []) is None
    triggers.forget(endpoints.Request("default", "web"))
    assert triggers.changed(web, old) == "T0"
    triggers.forget(endpoints.Request("default", "none"))
