"""Ingresses, policies, addresses, endpoint slices."""

from __future__ import annotations

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, name, some
from konverge.apiserver.table.core import load_balancer

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_HOSTS_SHOWN = 3


def hosts(ingress: Obj) -> str:
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


def address(ingress: Obj) -> str:
    return ",".join(load_balancer(ingress))


def ingress_ports(ingress: Obj) -> str:
    return "80, 443" if ingress["spec"].get("tls") else "80"


def class_name(obj: Obj) -> str:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return name(obj) + (" (default)" if default else "")


def parameters(obj: Obj) -> str:
    parameters = (obj.get("spec") or {}).get("parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def parent(obj: Obj) -> str:
    parent = (obj.get("spec") or {}).get("parentRef")
    if not parent:
        return NONE
    resource = parent.get("resource", "") + (f".{parent['group']}" if parent.get("group") else "")
    parts = [resource.lower(), parent.get("namespace", ""), parent.get("name", "")]
    return "/".join(part for index, part in enumerate(parts) if part or index == 2)


def slice_ports(obj: Obj) -> str:
    """Upstream: formatDiscoveryPorts."""
    shown = [
        str(port["port"]) if port.get("port") is not None else port.get("name", "*") for port in obj.get("ports") or ()
    ]
    return some(shown)


def slice_endpoints(obj: Obj) -> str:
    """Upstream: formatDiscoveryEndpoints."""
    shown = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return some(shown)
