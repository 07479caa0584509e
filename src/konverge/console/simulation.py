"""`/console/v1/simulation`: nodes, clock and faults of a simulated cluster, and recordings that become tests.

What is simulated is not guarded by the cluster's own rights. So only callers who may do everything there may use it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from konverge.console.answers import json_answer
from konverge.console.call import Call
from konverge.console.recorded_test import FILE, recorded_test
from konverge.console.recording import Recording, healths
from konverge.console.rights import may
from konverge.service.problems import Problem
from konverge.wire.message import Headers, Response

FAULTS = "simulation/faults/"


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a fault needs to know."""

    name: str
    title: str
    type: Literal["select", "number", "text"] = "text"
    values: list[str] = []
    default: str | float | None = None


class Fault(msgspec.Struct, frozen=True):
    """Something that can be made to go wrong."""

    name: str
    title: str
    parameters: list[Parameter] = []


class Simulation(Protocol):
    """The simulation behind a cluster."""

    operators: list[str]
    """Those that run in it, by name."""

    async def state(self) -> dict[str, Any]:
        """`nodes`, `clock` and `seed`."""

    async def faults(self) -> list[Fault]:
        """What can be made to go wrong now."""

    async def inflict(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Make it go wrong; what a recording has to know of it. Raises ValueError for values that do not fit."""


class _Active(msgspec.Struct):
    active: bool


class Simulator:
    """The console's side of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.recording = Recording()

    def answers(self) -> dict[tuple[str, str], Callable[[Call], Awaitable[Response]]]:
        return {
            ("GET", "simulation"): self._state,
            ("POST", "simulation/recording"): self._record,
            ("GET", "simulation/recording/test"): self._test,
        }

    async def inflict(self, call: Call, name: str) -> Response:
        await _check(call)
        known = {fault.name: fault for fault in await self._simulation.faults()}
        if name not in known:
            raise Problem(404, f"there is no fault {name}; there are: {', '.join(known)}", reason="NotFound")
        values = _values(known[name], call.body(dict[str, Any]))
        try:
            noted = await self._simulation.inflict(name, values)
        except ValueError as error:
            raise Problem(422, str(error), reason="Invalid") from error
        self.recording.add_fault(name, noted)
        return await self._state(call)

    async def _state(self, call: Call) -> Response:
        await _check(call)
        recorded = {"active": self.recording.active, "steps": len(self.recording.steps)}
        state = await self._simulation.state()
        return json_answer({**state, "faults": await self._simulation.faults(), "recording": recorded})

    async def _record(self, call: Call) -> Response:
        await _check(call)
        if call.body(_Active).active:
            self.recording.start()
        else:
            await self.recording.stop(call.client)
        return await self._state(call)

    async def _test(self, call: Call) -> Response:
        await _check(call)
        state = await self._simulation.state()
        expected = self.recording.outcome
        if expected is None:
            expected = await healths(self.recording, call.client)
        nodes, seed = len(state["nodes"]), state["seed"]
        text = recorded_test(self.recording, self._simulation.operators, expected, nodes=nodes, seed=seed)
        fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": f'attachment; filename="{FILE}"'}
        return Response(200, Headers.of(fields), text.encode())


def _values(fault: Fault, given: dict[str, Any]) -> dict[str, Any]:
    """What was given for each parameter. Raises a 422."""
    values: dict[str, Any] = {}
    for parameter in fault.parameters:
        value = given.get(parameter.name, parameter.default)
        if parameter.type == "number":
            if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 86_400:
                raise Problem(422, f"{parameter.name} must be a number of seconds, at most a day", reason="Invalid")
        elif not isinstance(value, str) or (parameter.values and value not in parameter.values):
            known = f"; known are: {', '.join(parameter.values)}" if parameter.values else ""
            raise Problem(422, f"{parameter.name} is needed{known}", reason="Invalid")
        values[parameter.name] = value
    return values


async def _check(call: Call) -> None:
    """Raises a 403 for callers who may not do everything."""
    if not await may(call.client, resourceAttributes={"verb": "*", "group": "*", "resource": "*"}):
        raise Problem(403, "the simulation is for administrators of the cluster", reason="Forbidden")
