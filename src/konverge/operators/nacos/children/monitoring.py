"""What watches the servers: a ServiceMonitor, alerts and a dashboard.

Prometheus gives the servers' series the labels `namespace` and `job`, the name of the Service; by these the expressions
choose those of one Nacos. A test holds every series that is named here against what servers of three versions answered.
"""

from __future__ import annotations

import json
from typing import Any

from konverge.objects import Object, Resource, field
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.observe import monitoring
from konverge.observe.monitoring import Alert, Panel
from konverge.operators.nacos import names
from konverge.operators.nacos.desired import Desired

PATH = "/nacos/actuator/prometheus"
_SIDECAR = {"grafana_dashboard": "1"}
"""The label by which the sidecar of Grafana's chart finds dashboards."""


class ServiceMonitor(Object):
    """The kind of the Prometheus operator. A cluster may not have it, so it is not watched."""

    spec: dict[str, Any] = field(default_factory=dict)


ServiceMonitor.resource = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")


def wants_monitor(desired: Desired) -> bool:
    return desired.spec.metrics.enabled and desired.spec.metrics.service_monitor.enabled


def service_monitor(desired: Desired) -> ServiceMonitor:
    """All Services of a Nacos have the same labels; of a cluster's two Services, one is enough."""
    options = desired.spec.metrics.service_monitor
    front = names.front(desired.name, desired.cluster)
    meta = desired.metadata(desired.name)
    meta.labels |= options.labels
    return ServiceMonitor(
        api_version=ServiceMonitor.resource.api_version,
        kind=ServiceMonitor.resource.kind,
        metadata=meta,
        spec={
            "selector": {"matchLabels": names.selector(desired.name)},
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


# ------------------------------------------------------------------ alerts


class PrometheusRule(Object):
    """The kind of the Prometheus operator. A cluster may not have it, so it is not watched."""

    spec: dict[str, Any] = field(default_factory=dict)


PrometheusRule.resource = Resource("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")


def wants_rules(desired: Desired) -> bool:
    """Alerts about series that are not scraped would always be wrong."""
    return wants_monitor(desired) and desired.spec.metrics.prometheus_rule.enabled


def prometheus_rule(desired: Desired) -> PrometheusRule:
    meta = desired.metadata(desired.name)
    meta.labels |= desired.spec.metrics.prometheus_rule.labels
    of = f"{meta.namespace}/{desired.name}"
    return PrometheusRule(
        api_version=PrometheusRule.resource.api_version,
        kind=PrometheusRule.resource.kind,
        metadata=meta,
        spec=monitoring.rules(f"nacos {of}", f"Nacos {of}", alerts(desired)),
    )


def alerts(desired: Desired) -> list[Alert]:
    """A Nacos that hibernates has no servers, so that none can be missed."""
    every = [] if desired.spec.hibernate else _alerts_of_members(desired)
    heap, largest = (_series(desired, f"jvm_memory_{what}_bytes", area="heap") for what in ("used", "max"))
    free, disk = _series(desired, "disk_free_bytes"), _series(desired, "disk_total_bytes")
    opened, files = _series(desired, "process_files_open_files"), _series(desired, "process_files_max_files")
    failures = _series(desired, "nacos_exception_total", name=("db", "disk", "leaderSendBeatFailed"))
    return [
        *every,
        Alert(
            "NacosHeapFull",
            f"sum by (pod) ({heap}) / sum by (pod) ({largest} > 0) > 0.9",
            "15m",
            "warning",
            "more than 90 % of the heap of {{ $labels.pod }} are in use: raise the memory in spec.resources",
        ),
        Alert(
            "NacosDiskFull",
            f"min by (pod) ({free} / {disk}) < 0.1",
            "15m",
            "warning",
            "less than 10 % of the disk of {{ $labels.pod }} are free: enlarge spec.volume.requests.storage",
        ),
        Alert(
            "NacosFilesExhausted",
            f"max by (pod) ({opened} / {files}) > 0.9",
            "15m",
            "warning",
            "{{ $labels.pod }} has opened more than 90 % of the files that it may",
        ),
        Alert(
            "NacosFailures",
            f"sum by (pod, name) (increase({failures}[10m])) > 0",
            "5m",
            "warning",
            "{{ $labels.pod }} reports failures of {{ $labels.name }}: its log says more",
        ),
        Alert(
            "NacosDatabaseWaits",
            f"max by (pod) ({_series(desired, 'hikaricp_connections_pending')}) > 0",
            "5m",
            "warning",
            "requests of {{ $labels.pod }} wait for a connection to its database: it is slow, or it allows too few",
        ),
    ]


def _alerts_of_members(desired: Desired) -> list[Alert]:
    up = _series(desired, "up")
    most = desired.quorum
    return [
        Alert(
            "NacosUnavailable",
            f"(sum({up}) or vector(0)) < {most}",
            "5m",
            "critical",
            f"fewer than {most} of {desired.replicas} servers answer: `kubectl describe nacos {desired.name}` says why",
        ),
        Alert(
            "NacosMemberDown",
            f"min by (pod) ({up}) == 0",
            "10m",
            "warning",
            "{{ $labels.pod }} does not answer",
        ),
    ]


# ------------------------------------------------------------------ dashboard


def wants_dashboard(desired: Desired) -> bool:
    return desired.spec.metrics.enabled and desired.spec.metrics.dashboard.enabled


def dashboard(desired: Desired) -> ConfigMap:
    name = names.dashboard(desired.name)
    meta = desired.metadata(name)
    meta.labels |= {**_SIDECAR, **desired.spec.metrics.dashboard.labels}
    title = f"Nacos {meta.namespace}/{desired.name}"
    content = monitoring.dashboard(title, ("nacos",), panels(desired))
    return ConfigMap(metadata=meta, data={f"{meta.namespace}-{name}.json": json.dumps(content, indent=1)})


def panels(desired: Desired) -> list[Panel]:
    def nacos(name: str) -> str:
        return _series(desired, "nacos_monitor", name=name)  # the module of some is another one in later versions

    def by_pod(expression: str) -> tuple[tuple[str, str], ...]:
        return ((f"sum by (pod) ({expression})", "{{pod}}"),)

    requests = _series(desired, "http_server_requests_seconds_count")
    pauses = _series(desired, "jvm_gc_pause_seconds_sum")
    pools = [(_series(desired, f"hikaricp_connections_{state}"), state) for state in ("active", "pending", "max")]
    return [
        Panel("Servers that answer", "short", ((f"sum({_series(desired, 'up')})", "servers"),)),
        Panel("Connections of clients", "short", by_pod(nacos("longConnection"))),
        Panel("Configurations", "short", ((f"max({nacos('configCount')})", "configurations"),)),
        Panel("Services", "short", ((f"max({nacos('serviceCount')})", "services"),)),
        Panel("Instances", "short", by_pod(nacos("ipCount"))),
        Panel("Subscribers", "short", by_pod(nacos("subscriberCount"))),
        Panel("Longest push to clients", "ms", by_pod(nacos("maxPushCost"))),
        Panel("Failed pushes", "short", by_pod(nacos("failedPush"))),
        Panel("HTTP requests", "reqps", ((f"sum by (pod, status) (rate({requests}[5m]))", "{{pod}} {{status}}"),)),
        Panel(
            "Connections to the database",
            "short",
            tuple((f"sum by (pod) ({series})", f"{{{{pod}}}} {state}") for series, state in pools),
        ),
        Panel("Heap", "bytes", by_pod(_series(desired, "jvm_memory_used_bytes", area="heap"))),
        Panel("Pauses of the garbage collector, per second", "s", ((f"sum by (pod) (rate({pauses}[5m]))", "{{pod}}"),)),
        Panel("CPU, of all processors", "percentunit", by_pod(_series(desired, "process_cpu_usage"))),
        Panel("Free disk", "bytes", by_pod(_series(desired, "disk_free_bytes"))),
    ]


def _series(desired: Desired, metric: str, **labels: str | tuple[str, ...]) -> str:
    """The series of this Nacos; several values of a label are alternatives."""
    place = {"namespace": desired.namespace, "job": names.front(desired.name, desired.cluster)}
    chosen = [
        f'{label}=~"{"|".join(value)}"' if isinstance(value, tuple) else f'{label}="{value}"'
        for label, value in (place | labels).items()
    ]
    return f"{metric}{{{','.join(chosen)}}}"
