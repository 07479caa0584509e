"""Simulated Nacos servers on the pods of a simulated cluster; they answer as real 2.x and 3.x servers were recorded to.

    async with Cluster() as cluster, SimulatedNacos(cluster) as nacos:
        servers = HttpNacosServers(nacos.connect)

`settings` is what a container tells its server, `ensemble` what goes on between servers (pure), `handler` and `bodies`
what they answer, `mischief` what is wrong with the answers, `simulated` the shell that joins them to the cluster.
"""

from __future__ import annotations

from konverge.sim.nacos.faults import Fault
from konverge.sim.nacos.simulated import SimulatedNacos
from konverge.sim.nacos.timings import QUICK, Timings

__all__ = ["QUICK", "Fault", "SimulatedNacos", "Timings"]
