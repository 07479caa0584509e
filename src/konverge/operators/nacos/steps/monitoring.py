"""The ServiceMonitor and the PrometheusRule of a Nacos.

They are written without being watched, since their kinds may not exist: so they are applied again from time to time,
which is no change for the API server when nothing differs. A condition reports each; Nacos itself never waits for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress

import msgspec

from konverge.client import Forbidden, Invalid, NotFound
from konverge.objects import Object, to_json
from konverge.operators.nacos.children.monitoring import (
    PrometheusRule,
    ServiceMonitor,
    prometheus_rule,
    service_monitor,
    wants_monitor,
    wants_rules,
)
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.steps.ownership import NOT_OWNED
from konverge.operators.nacos.steps.state import Memory, ReconcileState
from konverge.runtime import NotOwned

INTERVAL = 600.0
"""Seconds between two writes of an unchanged object."""


class _Part(msgspec.Struct, frozen=True):
    """One of the objects."""

    condition: str
    kind: type[Object]
    wanted: Callable[[Desired], bool]
    make: Callable[[Desired], Object]
    applied: Callable[[ReconcileState], Memory]


_RULES = _Part("Alerting", PrometheusRule, wants_rules, prometheus_rule, lambda state: state.tools.rules_applied)
_PARTS = (
    _Part("Monitored", ServiceMonitor, wants_monitor, service_monitor, lambda state: state.tools.monitors_applied),
    _RULES,
)


async def ensure_monitoring(state: ReconcileState) -> None:
    for part in _PARTS:
        if part.wanted(state.desired):
            await _ensure(state, part)
        else:
            await _remove(state, part)


async def excuse_servers(state: ReconcileState) -> None:
    """The servers were asked to end: no alert fires for that. Nothing else of a Nacos that hibernates is written."""
    if wants_rules(state.desired):
        await _ensure(state, _RULES)


async def _ensure(state: ReconcileState, part: _Part) -> None:
    made, applied, kind = part.make(state.desired), part.applied(state), part.kind.resource.kind
    fingerprint = hashlib.sha256(to_json(made)).hexdigest()
    if applied.fresh(state.key, fingerprint, INTERVAL):
        return
    applied.remember(state.key, fingerprint)
    first = not state.is_true(part.condition)
    try:
        await state.ctx.apply(made)
    except NotOwned as error:
        _report_none(state, part, NOT_OWNED, str(error))
        return
    except NotFound:
        _report_none(state, part, "KindMissing", f"the cluster has no kind {kind}: install the Prometheus operator")
        return
    except (Forbidden, Invalid) as error:
        _report_none(state, part, "Refused", f"the API server refuses the {kind}: {error}")
        return
    state.condition(part.condition, True, kind, f"{kind} {made.metadata.name} exists")
    if first:
        state.note("CREATE", kind, made.metadata.name)
        state.wrote = True


def _report_none(state: ReconcileState, part: _Part, reason: str, message: str) -> None:
    state.condition(part.condition, False, reason, message)
    state.ctx.warning(reason, message)


async def _remove(state: ReconcileState, part: _Part) -> None:
    if state.is_true(part.condition):
        part.applied(state).forget(state.key)
        with suppress(NotFound):  # deleted by others, or with its kind
            await state.delete(await state.ctx.client.get(part.kind, state.desired.name, state.key.namespace))
        state.condition(part.condition, False, "NotWished", f"the {part.kind.resource.kind} was removed")
