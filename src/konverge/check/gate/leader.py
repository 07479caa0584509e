"""Leadership lost: another process holds the operator's Lease, until the operator has ended.

Upstream: client-go's tools/leaderelection. A leader that cannot renew gives up after its RenewDeadline and must end: it
does not know what the next leader does.
"""

from __future__ import annotations

import asyncio

from konverge.check.gate.core import WRITES, Gate, Perturber
from konverge.check.model import Exchange, LeaderLost, Obj
from konverge.objects import times
from konverge.wire.message import Request, Response

LEASES = "coordination.k8s.io/leases"
PATIENCE = 30.0
"""Seconds until a leader must have ended: twice client-go's LeaseDuration."""
DURATION = 15.0
"""client-go's LeaseDuration: until then a leader may not know that another has its Lease."""
_LOOK = 0.5
_OTHER = "another-process"


class Deposing(Perturber):
    """Takes the Lease after a write, and frees it when the next incarnation comes or the patience ends."""

    def __init__(self, lost: LeaderLost) -> None:
        self._lost = lost
        self._gate: Gate | None = None
        self._lease: tuple[str, str] | None = None
        """Namespace and name of what the operator renews."""
        self._taken = 0
        """From this incarnation; 0: not, or not any more."""
        self._since = 0.0

    def attach(self, gate: Gate) -> None:
        self._gate = gate

    @property
    def holds(self) -> bool:
        return self._taken > 0

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        if self._taken and exchange.incarnation > self._taken:
            self._free()
        elif self._taken and self._gate is not None and self._gate.recorder.now() - self._since > DURATION:
            exchange.error = "not the leader any more"
        return None

    async def after(self, exchange: Exchange, request: Request, response: Response) -> Response:
        if exchange.resource == LEASES and exchange.verb in WRITES and response.status < 400:
            self._lease = (exchange.namespace, exchange.name)
        if not self.done and exchange.place == self._lost.place and self._lease is not None:
            self._take(exchange.incarnation)
        return response

    def _take(self, incarnation: int) -> None:
        if self._gate is not None and self._write(_OTHER):
            self.done = True
            self._taken, self._since = incarnation, self._gate.recorder.now()
            self._gate.note(f"another process takes the Lease after {self._lost.place}")

    def _free(self) -> None:
        self._taken = 0
        self._write("")

    def _write(self, holder: str) -> bool:
        if self._gate is None or self._lease is None:
            return False
        record = self._gate.recorder.record(LEASES, *self._lease)
        if record is None:
            return False
        lease: Obj = record.decode()
        now = times.micro_now()
        lease["spec"] = {**lease.get("spec", {}), "holderIdentity": holder, "renewTime": now, "acquireTime": now}
        self._gate.recorder.write(LEASES, lease)
        return True

    async def rested(self, step: int) -> bool:
        if not self._taken or self._gate is None:
            return False
        waited = 0.0
        while self._taken and self._gate.recorder.incarnation == self._taken and waited < PATIENCE:
            await asyncio.sleep(_LOOK)
            waited += _LOOK
        if self._taken:
            self._free()
        return True
