"""The subresources of the built-in kinds that are not an update of a part of the object."""

from __future__ import annotations

from konverge.apiserver.lazy import Route, route

_HTTP = "konverge.apiserver.http"
_WHERE = {
    ("", "bindings", ""): ("binding", "bind"),
    ("", "componentstatuses", ""): ("component_statuses", "status_of_components"),
    ("", "pods", "binding"): ("binding", "bind"),
    ("", "pods", "eviction"): ("eviction", "evict"),
    ("", "pods", "log"): ("connect", "log"),
    ("", "pods", "exec"): ("connect", "exec_or_attach"),
    ("", "pods", "attach"): ("connect", "exec_or_attach"),
    ("", "pods", "portforward"): ("connect", "port_forward"),
    ("", "pods", "proxy"): ("connect", "pod_proxy"),
    ("", "services", "proxy"): ("connect", "service_proxy"),
    ("", "nodes", "proxy"): ("connect", "node_proxy"),
}


def table() -> dict[tuple[str, str, str], Route]:
    """By group, plural and subresource."""
    return {place: route(f"{_HTTP}.{module}", name) for place, (module, name) in _WHERE.items()}
