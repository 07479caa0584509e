"""The subresources of the built-in kinds that are not an update of a part of the object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from konverge.apiserver.http import binding, components, connect, eviction
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call

Special = Callable[["Call"], Awaitable[Response]]


def table() -> dict[tuple[str, str, str], Special]:
    """By group, plural and subresource."""
    return {
        ("", "bindings", ""): binding.bind,
        ("", "componentstatuses", ""): components.status_of_components,
        ("", "pods", "binding"): binding.bind,
        ("", "pods", "eviction"): eviction.evict,
        ("", "pods", "log"): connect.log,
        ("", "pods", "exec"): connect.exec_or_attach,
        ("", "pods", "attach"): connect.exec_or_attach,
        ("", "pods", "portforward"): connect.port_forward,
        ("", "pods", "proxy"): connect.pod_proxy,
        ("", "services", "proxy"): connect.service_proxy,
        ("", "nodes", "proxy"): connect.node_proxy,
    }
