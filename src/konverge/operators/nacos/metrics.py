"""Prometheus metrics of each Nacos: phase, members, early ends. Values only: the text is built on a scrape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.operators.nacos.resource import NacosStatus
from konverge.runtime import Request

_PHASES = ("Creating", "Running", "Failed", "Hibernated")


class ResourceMetrics(msgspec.Struct):
    """The values of one resource."""

    phase: str = ""
    replicas: int = 0
    ready: int = 0
    verified: int = 0
    reconciles: int = 0
    ended_early: dict[int, int] = msgspec.field(default_factory=dict)
    """Reconciles that ended early, by code."""
    restarts: int = 0
    """Pods that the operator deleted, to replace or to heal them."""


class NacosMetrics(msgspec.Struct):
    """All resources of a process."""

    resources: dict[Request, ResourceMetrics] = msgspec.field(default_factory=dict)

    def of(self, key: Request) -> ResourceMetrics:
        return self.resources.setdefault(key, ResourceMetrics())

    def forget(self, key: Request) -> None:
        self.resources.pop(key, None)

    def record(self, key: Request, status: NacosStatus) -> None:
        values = self.of(key)
        values.phase, values.replicas, values.ready = status.phase, status.replicas, status.ready_replicas
        values.verified = sum(node.status == "true" for node in status.servers)

    def collect(self) -> Iterable[Any]:
        """For prometheus_client, which is imported on the first scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        by = ["namespace", "name"]
        phase = GaugeMetricFamily("nacos_phase", "1 for the phase that a Nacos is in", labels=[*by, "phase"])
        ended = CounterMetricFamily("nacos_rounds_interrupted", "Reconciles that ended early", labels=[*by, "code"])
        gauges = {
            name: GaugeMetricFamily(f"nacos_{name}", text, labels=by)
            for name, text in (
                ("replicas", "Servers that exist"),
                ("ready", "Servers whose pods are ready"),
                ("verified", "Servers that report themselves up"),
            )
        }
        reconciles = CounterMetricFamily("nacos_rounds", "Reconciles of the operator", labels=by)
        restarts = CounterMetricFamily("nacos_pod_restarts", "Pods replaced by the operator", labels=by)
        for key, values in self.resources.items():
            labels = [key.namespace, key.name]
            for name in _PHASES:
                phase.add_metric([*labels, name], float(values.phase == name))
            for code, count in values.ended_early.items():
                ended.add_metric([*labels, str(code)], count)
            for name, gauge in gauges.items():
                gauge.add_metric(labels, getattr(values, name))
            reconciles.add_metric(labels, values.reconciles)
            restarts.add_metric(labels, values.restarts)
        return [phase, *gauges.values(), reconciles, restarts, ended]
