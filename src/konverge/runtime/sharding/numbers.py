"""The metrics of a replica: its group, and its part of the work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from konverge.runtime.sharding.shares import Shares


def sharding_metrics(shares: Shares) -> Iterable[Metric]:
    """Computed when they are read."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # for those who ask for metrics

    group, replica = shares.replica.sharding.name, shares.replica
    gauges = {
        "sharding_members": ("Live members of the group", replica.members),
        "sharding_keys_owned": ("Objects of the controllers' kinds that this replica works on", shares.keys_owned()),
        "sharding_slots_owned": ("Slots that this replica works on", len(replica.membership.share)),
        "sharding_epoch": ("The newest assignment that this replica has seen", replica.membership.assignment.epoch),
    }
    for name, (about, value) in gauges.items():
        gauge = GaugeMetricFamily(name, about, labels=["group"])
        gauge.add_metric([group], value)
        yield gauge
    counter = CounterMetricFamily("sharding_handovers", "Hand-overs that this replica has seen", labels=["group"])
    counter.add_metric([group], replica.handovers)
    yield counter
