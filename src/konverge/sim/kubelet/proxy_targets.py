"""Where a request through `pods/proxy` or `services/proxy` goes: a port at a pod's address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from konverge import clock
from konverge.apiserver import status
from konverge.apiserver.go.strconv import quote
from konverge.sim.kubelet import forwarding

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

Obj = dict[str, Any]
_SCHEMES = ("", "http", "https")


@dataclass(frozen=True, slots=True)
class Target:
    """Something that listens, or should."""

    tls: bool
    address: str
    port: int

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}"


def of_pod(call: Call) -> Target:  # upstream: ResourceLocation (pkg/registry/core/pod/strategy.go)
    """By the port that is asked for, or the first that a container declares. Raises ApiError."""
    scheme, name, port = _split(call.info.name, "pod")
    pod = call.lookup("", "pods", call.info.namespace, name)
    if pod is None:
        raise status.not_found("", "pods", name)
    if not port:
        declared = (entry["containerPort"] for part in pod["spec"]["containers"] for entry in part.get("ports") or ())
        port = str(next(declared, 443 if scheme == "https" else 80))
    address = (pod.get("status") or {}).get("podIP", "")
    try:
        forwarding.check(address)
    except ValueError:
        raise status.bad_request("address not allowed") from None
    return Target(scheme == "https", address, _number(port))


def _number(port: str) -> int:
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise unreachable(f"dial tcp: lookup tcp/{port}: unknown port")
    return int(port)


def of_service(call: Call) -> Target:  # upstream: ResourceLocation (pkg/registry/core/service/storage/storage.go)
    """A ready endpoint that is a pod, by the name or the number of the Service's port. Raises ApiError."""
    scheme, name, port = _split(call.info.name, "service")
    namespace = call.info.namespace
    if port.lstrip("-").isdigit():
        service = call.lookup("", "services", namespace, name)
        if service is None:
            raise status.not_found("", "services", name)
        named = [entry.get("name", "") for entry in service["spec"].get("ports") or () if str(entry["port"]) == port]
        if not named:
            raise _unavailable(f"no service port {int(port[:20])} found for service {quote(name)}")
        port = named[0]
    ready = list(_endpoints(call, namespace, name, port))
    if not ready:
        raise _unavailable(f"no endpoints available for service {quote(name)}")
    address, number = clock.rng().choice(ready)
    return Target(scheme == "https", address, number)


def _endpoints(call: Call, namespace: str, service: str, port: str) -> Iterator[tuple[str, int]]:
    """Addresses and ports of ready pods. Upstream: RandomEndpoint (apiserver/pkg/util/proxy/proxy.go)."""
    for part in call.scan("discovery.k8s.io", "endpointslices", namespace):
        if (part["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != service:
            continue
        numbers = [entry["port"] for entry in part.get("ports") or () if entry.get("name") == port and "port" in entry]
        for endpoint in part.get("endpoints") or () if numbers else ():
            ready = (endpoint.get("conditions") or {}).get("ready")
            if ready is not False and _is_pod(call, namespace, endpoint):
                yield endpoint["addresses"][0], numbers[0]


def _is_pod(call: Call, namespace: str, endpoint: Obj) -> bool:
    """Whether the address of an endpoint is that of its pod: else anybody's slice would lead anywhere.

    Upstream: isValidAddress (pkg/registry/core/service/storage/storage.go).
    """
    target = endpoint.get("targetRef") or {}
    if target.get("namespace") != namespace:
        return False
    pod = call.lookup("", "pods", namespace, target.get("name", ""))
    address = endpoint["addresses"][0]
    if pod is None or address not in [entry["ip"] for entry in (pod.get("status") or {}).get("podIPs") or ()]:
        return False
    try:
        forwarding.check(address)
    except ValueError:
        return False
    return True


def _split(text: str, what: str) -> tuple[str, str, str]:  # upstream: SplitSchemeNamePort (apimachinery/pkg/util/net)
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`."""
    parts = text.split(":")
    scheme, name, port = (
        ("", *parts, "")[:3] if len(parts) == 1 else ("", *parts) if len(parts) == 2 else (*parts, "", "")[:3]
    )
    if len(parts) > 3 or not name or scheme not in _SCHEMES:
        raise status.bad_request(f"invalid {what} request {quote(text)}")
    return scheme, name, port


def unreachable(why: str) -> status.ApiError:
    return _unavailable(f"error trying to reach service: {why}")


def _unavailable(message: str) -> status.ApiError:
    return status.ApiError(503, "ServiceUnavailable", message)
