"""The ServiceMonitor, as part of MakeEnsure: written without being watched, since its kind may not exist.

So it is applied again from time to time, which the API server takes for nothing when nothing differs. Whether there is
one is told by a condition; Nacos itself never waits for it.
"""

from __future__ import annotations

import hashlib

from konverge.client import Forbidden, Invalid, NotFound
from konverge.objects import to_json
from konverge.operators.nacos.children.monitoring import ServiceMonitor, service_monitor, wants_monitor
from konverge.operators.nacos.steps.round import Round

MONITORED = "Monitored"
_AGAIN_AFTER = 600.0
"""Seconds between two looks."""


async def ensure_monitor(round: Round) -> bool:
    """True when it was written for the first time, or removed."""
    if not wants_monitor(round.wish):
        return await _remove(round)
    wanted = service_monitor(round.wish)
    fingerprint = hashlib.sha256(to_json(wanted)).hexdigest()
    if round.tools.monitors.fresh(round.key, fingerprint, _AGAIN_AFTER):
        return False
    round.tools.monitors.note(round.key, fingerprint)
    first = not round.is_true(MONITORED)
    try:
        await round.ctx.apply(wanted)
    except NotFound:
        _unavailable(round, "KindMissing", "the cluster knows no ServiceMonitor: install the Prometheus operator")
        return False
    except (Forbidden, Invalid) as refused:
        _unavailable(round, "Refused", f"the API server refuses the ServiceMonitor: {refused}")
        return False
    round.condition(MONITORED, True, "ServiceMonitor", f"ServiceMonitor {wanted.metadata.name} is there")
    if first:
        round.note("CREATE", "ServiceMonitor", wanted.metadata.name)
    return first


def _unavailable(round: Round, reason: str, message: str) -> None:
    round.condition(MONITORED, False, reason, message)
    round.ctx.warning(reason, message)


async def _remove(round: Round) -> bool:
    if not round.is_true(MONITORED):
        return False
    round.tools.monitors.forget(round.key)
    removed = await round.delete(ServiceMonitor, round.wish.name)
    round.condition(MONITORED, False, "NotWished", "there is no ServiceMonitor any more")
    return removed
