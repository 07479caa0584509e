"""Ingresses, policies, addresses, endpoint slices."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, age, at, name, selector_at, some
from konverge.apiserver.table.core import load_balancer

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_HOSTS_SHOWN = 3


def _hosts(ingress: Obj) -> str:
    """The first hosts. The others are counted by rules, whether they have a host or not. Upstream: formatHosts."""
    rules = ingress["spec"].get("rules") or []
    shown: list[str] = []
    more = False
    for rule in rules:
        more = more or len(shown) == _HOSTS_SHOWN
        if not more and rule.get("host"):
            shown.append(rule["host"])
    if not shown:
        return "*"
    joined = ",".join(shown)
    return f"{joined} + {len(rules) - _HOSTS_SHOWN} more..." if more else joined


def _class_name(obj: Obj) -> str:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return name(obj) + (" (default)" if default else "")


def _parameters(obj: Obj) -> str:
    parameters = (obj.get("spec") or {}).get("parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def _parent(obj: Obj) -> str:
    parent = (obj.get("spec") or {}).get("parentRef")
    if not parent:
        return NONE
    resource = parent.get("resource", "") + (f".{parent['group']}" if parent.get("group") else "")
    parts = [resource.lower(), parent.get("namespace", ""), parent.get("name", "")]
    return "/".join(part for index, part in enumerate(parts) if part or index == 2)


def _slice_ports(obj: Obj) -> str:
    """Upstream: formatDiscoveryPorts."""
    shown = [
        str(port["port"]) if port.get("port") is not None else port.get("name", "*") for port in obj.get("ports") or ()
    ]
    return some(shown, len(shown))


def _slice_endpoints(obj: Obj) -> str:
    """Upstream: formatDiscoveryEndpoints."""
    shown = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return some(shown, len(shown))


KINDS: dict[str, dict[str, Any]] = {
    "Ingress": {
        "Name": name,
        "Class": at("spec.ingressClassName", NONE),
        "Hosts": _hosts,
        "Address": lambda obj: ",".join(load_balancer(obj)),
        "Ports": lambda obj: "80, 443" if obj["spec"].get("tls") else "80",
        "Age": age,
    },
    "IngressClass": {"Name": _class_name, "Controller": at("spec.controller"), "Parameters": _parameters, "Age": age},
    "NetworkPolicy": {"Name": name, "Pod-Selector": selector_at("spec.podSelector"), "Age": age},
    "IPAddress": {"Name": name, "ParentRef": _parent, "Age": age},  # a cell more than there are columns
    "ServiceCIDR": {"Name": name, "CIDRs": lambda obj: ",".join(at("spec.cidrs", ())(obj)), "Age": age},
    "EndpointSlice": {
        "Name": name,
        "AddressType": at("addressType"),
        "Ports": _slice_ports,
        "Endpoints": _slice_endpoints,
        "Age": age,
    },
}
