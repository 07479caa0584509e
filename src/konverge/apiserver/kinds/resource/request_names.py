"""The names of a claim's requests, and the references to them in constraints, configurations and results."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, field
from konverge.apiserver.kinds.resource.devices import up_to
from konverge.apiserver.kinds.rules.defaults import each
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.strategy import Obj

MOST_REFERENCES = 32
_UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def requests_of(devices: Obj) -> set[str]:
    """What may be referred to: requests, and their alternatives as `request/alternative`."""
    names = set()
    for request in each(devices, "requests"):
        name = request.get("name") or ""
        names.add(name)
        names.update(f"{name}/{alternative.get('name') or ''}" for alternative in each(request, "firstAvailable"))
    return names


def reference(value: Any, path: str, report: Report) -> bool:
    """A request by its name; `report.scope` has the names. Upstream: validateRequestNameRef."""
    segments = value.split("/")
    if len(segments) > 2:
        return report.invalid(path, value, _UNKNOWN)
    for segment in segments:
        dns_label(segment, path, report)
    return value in report.scope or report.invalid(path, value, _UNKNOWN)


REFERENCES = field("requests", up_to(MOST_REFERENCES, reference))
