"""Clusters at rest: everything was in order at the last whole reconcile, and nothing that is watched has changed since.

Then a look at the servers is enough, and if they say the same as before, nothing is to be done. Nearly all reconciles
of an operator with many clusters are such looks, and the six steps cost three times as much. What no watch would show
(an expired certificate, a database that is away, a status that another client wrote) is found by a whole reconcile: of
another version of the resource, and every few minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from konverge import clock
from konverge.objects import Condition
from konverge.operators.nacos.children.monitoring import wants_monitor, wants_rules
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.server import Identity, View
from konverge.operators.nacos.steps.asking import Server, ask_all
from konverge.operators.nacos.steps.hold import HELD
from konverge.operators.nacos.steps.outcome import DONE, Outcome
from konverge.operators.nacos.steps.state import HIBERNATED, PROGRESSING, UPGRADING, ReconcileState, Tools
from konverge.runtime import Context, Request, Timer

_TROUBLE = {PROGRESSING, UPGRADING, HIBERNATED, HELD, "Degraded", "Paused", "Reconciling", "Stalled"}
"""The conditions that are false while all is well."""
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Rest(msgspec.Struct, frozen=True):
    version: str
    """Of the resource."""
    until: float
    servers: tuple[Server, ...]
    identity: Identity | None
    answers: bytes


class Rests(msgspec.Struct):
    """The clusters at rest of one process, and what their servers said."""

    _known: dict[Request, _Rest] = msgspec.field(default_factory=dict)

    def forget(self, key: Request) -> None:
        self._known.pop(key, None)

    async def lasts(self, ctx: Context[AnyNacos], tools: Tools) -> bool:
        """Whether the steps would find what they found before."""
        rest = self._known.pop(ctx.request, None)
        if rest is None or not ctx.reasons or not all(isinstance(reason, Timer) for reason in ctx.reasons):
            return False
        if rest.version != ctx.obj.metadata.resource_version or clock.monotonic() >= rest.until:
            return False
        if _digest(await ask_all(tools, rest.servers, rest.identity)) != rest.answers:
            return False
        self._known[ctx.request] = rest
        return True

    def note(self, state: ReconcileState, outcome: Outcome, *, saved: bool) -> None:
        """After a whole reconcile: one that wrote something is not the last."""
        views = state.views
        if outcome is not DONE or state.wrote or saved or not views or any(view.error for view in views):
            return
        if not all(map(_in_order, state.status.kube_conditions)):
            return
        options, version = state.options, state.ctx.obj.metadata.resource_version
        interval = options.whole_interval
        if _unwatched(state):
            interval = min(interval, options.database_interval)
        until = clock.monotonic() + interval
        servers = tuple(Server(view.pod, view.address) for view in views)
        self._known[state.key] = _Rest(version, until, servers, state.identity, _digest(views))


def _in_order(condition: Condition) -> bool:
    """Else something waits for another attempt, though the servers serve."""
    return condition.status == ("False" if condition.type in _TROUBLE else "True")


def _unwatched(state: ReconcileState) -> bool:
    """Whether something of it can change that no watch shows."""
    desired = state.desired
    return desired.engine != "embedded" or wants_monitor(desired) or wants_rules(desired)


def _digest(views: Sequence[View]) -> bytes:
    return blake2b(_encode(views), digest_size=16).digest()
