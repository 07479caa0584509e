"""Simulated Nacos servers on the pods of a simulated cluster; they answer as real 2.x and 3.x servers do.

    async with Cluster() as cluster, SimulatedNacos(cluster) as nacos:
        servers = HttpNacosServers(nacos.connect)

`settings` is what a server reads from its container, `ensemble` what happens between servers (pure), `handler` and
`bodies` are their answers, `faults` breaks answers, and `simulated` connects all of them to the cluster.
"""

from __future__ import annotations

from konverge.sim.nacos.faults import Fault
from konverge.sim.nacos.member import QUICK, Timings
from konverge.sim.nacos.simulated import SimulatedNacos

__all__ = ["QUICK", "Fault", "SimulatedNacos", "Timings"]
