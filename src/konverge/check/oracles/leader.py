"""Only one writes at a time: an operator that has lost its Lease writes nothing more."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Alarm, Exchange, LeaderLost, Run
from konverge.check.reference import Reference

_NO_WRITES = ("/events", "events.k8s.io/", "coordination.k8s.io/", "authorization.k8s.io/", "authentication.k8s.io/")


def leader(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Writes of an incarnation that another has followed, or whose Lease is another's."""
    if not any(isinstance(item, LeaderLost) for item in run.plan.perturbations):
        return
    newest = 0
    for exchange in run.exchanges:
        newest = max(newest, exchange.incarnation)
        late = exchange.incarnation < newest or exchange.error.startswith("not the leader")
        if late and _writes(exchange):
            yield Alarm(
                oracle="leader",
                severity="high",
                object="operator",
                field=f"{exchange.verb} {exchange.resource.removeprefix('/')}",
                sentence=f"two write at the same time: {exchange.verb} {exchange.resource.removeprefix('/')}"
                f" {exchange.name} by an operator that no longer holds the Lease",
            )
            return


def _writes(exchange: Exchange) -> bool:
    return exchange.place is not None and not exchange.resource.startswith(_NO_WRITES)
