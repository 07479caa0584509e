"""What Prometheus needs: servers that show their numbers, and a ServiceMonitor that says where they are."""

from __future__ import annotations

from typing import Any

from konverge.objects import Object, Resource, field
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.wish import Wish

PATH = "/nacos/actuator/prometheus"


class ServiceMonitor(Object):
    """Of the Prometheus operator, whose definitions a cluster need not have: nothing watches it."""

    spec: dict[str, Any] = field(default_factory=dict)


ServiceMonitor.resource = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")


def wants_monitor(wish: Wish) -> bool:
    return wish.spec.metrics.enabled and wish.spec.metrics.service_monitor.enabled


def service_monitor(wish: Wish) -> ServiceMonitor:
    """All Services of a Nacos have the same labels; of a cluster's two, one is enough."""
    options = wish.spec.metrics.service_monitor
    front = names.front(wish.name, wish.cluster)
    meta = metadata(wish, wish.name)
    meta.labels |= options.labels
    return ServiceMonitor(
        api_version=ServiceMonitor.resource.api_version,
        kind=ServiceMonitor.resource.kind,
        metadata=meta,
        spec={
            "selector": {"matchLabels": names.selector(wish.name)},
            "endpoints": [
                {
                    "port": names.CLIENT,
                    "path": PATH,
                    "interval": options.interval,
                    "relabelings": [
                        {"sourceLabels": ["__meta_kubernetes_service_name"], "regex": front, "action": "keep"}
                    ],
                }
            ],
        },
    )
