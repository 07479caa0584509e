"""Service names for child processes: a small DNS server over the API server's Services and EndpointSlices.

names = Names(cluster.server.objects)
async with Resolver(names) as resolver:
    await resolver.listen("127.0.0.1", 53)          # 53 in a network namespace of one's own
    text = resolv_conf("127.0.0.1", "default")      # for /etc/resolv.conf in a mount namespace
"""

from __future__ import annotations

from konverge.sim.applications.names.resolver import Resolver, resolv_conf
from konverge.sim.applications.names.zone import Names

__all__ = ["Names", "Resolver", "resolv_conf"]
