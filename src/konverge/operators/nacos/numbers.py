"""What is known of each Nacos, for Prometheus: phase, members, trouble. Plain values; texts are made when scraped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from konverge.operators.nacos.status import NacosStatus
from konverge.runtime import Request

_PHASES = ("Creating", "Running", "Failed")


@dataclass(slots=True)
class OneNacos:
    """The numbers of one resource."""

    phase: str = ""
    replicas: int = 0
    ready: int = 0
    verified: int = 0
    rounds: int = 0
    interrupted: dict[int, int] = field(default_factory=dict)
    """Rounds that ended early, by code."""
    restarts: int = 0
    """Pods that the operator deleted, to replace or to heal them."""


@dataclass(slots=True)
class NacosNumbers:
    """All resources of a process."""

    known: dict[Request, OneNacos] = field(default_factory=dict)

    def of(self, key: Request) -> OneNacos:
        return self.known.setdefault(key, OneNacos())

    def forget(self, key: Request) -> None:
        self.known.pop(key, None)

    def take(self, key: Request, status: NacosStatus) -> None:
        one = self.of(key)
        one.phase, one.replicas, one.ready = status.phase, status.replicas, status.ready_replicas
        one.verified = sum(node.status == "true" for node in status.conditions)

    def collect(self) -> Iterable[Any]:
        """As prometheus_client wants them; it is imported when somebody scrapes."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        by = ["namespace", "name"]
        phase = GaugeMetricFamily("nacos_phase", "1 for the phase that a Nacos is in", labels=[*by, "phase"])
        stopped = CounterMetricFamily("nacos_rounds_interrupted", "Rounds that ended early", labels=[*by, "code"])
        gauges = {
            name: GaugeMetricFamily(f"nacos_{name}", text, labels=by)
            for name, text in (
                ("replicas", "Servers that there are"),
                ("ready", "Servers whose pods are ready"),
                ("verified", "Servers that are up by their own word"),
            )
        }
        rounds = CounterMetricFamily("nacos_rounds", "Rounds of the operator", labels=by)
        restarts = CounterMetricFamily("nacos_pod_restarts", "Pods replaced by the operator", labels=by)
        for key, one in self.known.items():
            at = [key.namespace, key.name]
            for name in _PHASES:
                phase.add_metric([*at, name], float(one.phase == name))
            for code, count in one.interrupted.items():
                stopped.add_metric([*at, str(code)], count)
            for name, gauge in gauges.items():
                gauge.add_metric(at, getattr(one, name))
            rounds.add_metric(at, one.rounds)
            restarts.add_metric(at, one.restarts)
        return [phase, *gauges.values(), rounds, restarts, stopped]
