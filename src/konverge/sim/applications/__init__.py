"""Stand-ins for the programs that run in pods: scripted exec, what they write to the API, small servers, their names.

docs/check/stand-ins.md has the form of a `--simulate` file, and how to write a server of one's own in ten lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.sim.applications.application import FAULTS as FAULTS
    from konverge.sim.applications.application import Application as Application
    from konverge.sim.applications.application import ExecAnswer as ExecAnswer
    from konverge.sim.applications.application import HttpApplication as HttpApplication
    from konverge.sim.applications.application import Member as Member
    from konverge.sim.applications.applications import Applications as Applications
    from konverge.sim.applications.applications import Server as Server
    from konverge.sim.applications.simulation import Simulation as Simulation
    from konverge.sim.applications.simulation import SimulationError as SimulationError
    from konverge.sim.applications.simulation import load_simulation as load_simulation
    from konverge.sim.applications.simulation import parse_simulation as parse_simulation
    from konverge.sim.applications.simulation import read_simulation as read_simulation

# Lazy: a file can be checked without the machinery that runs it.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.sim.applications.application": "Application ExecAnswer FAULTS HttpApplication Member",
        "konverge.sim.applications.applications": "Applications Server",
        "konverge.sim.applications.simulation": (
            "Simulation SimulationError load_simulation parse_simulation read_simulation"
        ),
    },
)
