"""Faults of the application: a stand-in fails for a moment, as the step begins that the operator needs it for.

The fault ends when it was met a few times, or at the rest after the step: an operator that never gets an answer backs
off for minutes, and its state says nothing about it.
"""

from __future__ import annotations

from konverge.check.gate.core import Gate, Perturber
from konverge.check.model import ApplicationFault
from konverge.sim.applications import Server

MET = 2
"""Connections that meet the fault."""


class Failing(Perturber):
    """Switches a fault of one server on before a step, and off again."""

    def __init__(self, fault: ApplicationFault) -> None:
        self._fault = fault
        self._gate: Gate | None = None
        self._connections = 0
        self._on = False

    def attach(self, gate: Gate) -> None:
        self._gate = gate
        server = self._server
        if server is not None:
            server.on_connection.append(self._connected)
        if self._fault.step == 0:
            self._begin()

    @property
    def _server(self) -> Server | None:
        """None where the stand-ins have none of this name, or not with this fault: the perturbation never comes."""
        applications = self._gate.applications if self._gate is not None else None
        server = applications.servers.get(self._fault.server) if applications is not None else None
        return server if server is not None and self._fault.fault in server.supported else None

    def between(self, step: int) -> bool:
        if step == self._fault.step - 1:
            self._begin()
        return False

    @property
    def holds(self) -> bool:
        return self._on

    async def rested(self, step: int) -> bool:
        if step < self._fault.step or not self._on:
            return False
        self._end()
        return True

    def _begin(self) -> None:
        server = self._server
        if server is not None:
            self._on = True
            server.fault = self._fault.fault

    def _connected(self) -> None:
        if not self._on:
            return
        self._connections += 1
        if self._connections == 1 and self._gate is not None:
            self.done = True
            self._gate.note(f"{self._fault.server} fails ({self._fault.fault})")
        if self._connections > MET:
            self._end()

    def _end(self) -> None:
        server = self._server
        self._on = False
        if server is not None:
            server.fault = ""
