"""Simulated KubeVirt, CDI, Multus and NMState on a simulated cluster: what a virtual machine operator works with.

    async with Cluster() as cluster, SimulatedKubeVirt(cluster) as kubevirt:
        await cluster.client.create(virtual_machine)

Machines run in pods of the cluster, on its nodes and volumes. `machines`, `instances`, `migrations`, `snapshots` and
`restores` are KubeVirt's controllers, `datavolumes` is CDI's, `nodenetworks` is NMState's; `admission` refuses what
their webhooks refuse, `faults` is what goes wrong on purpose. See docs/simulated-cluster.md.
"""

from __future__ import annotations

from konverge.sim.kubevirt.controller import QUICK, Timings
from konverge.sim.kubevirt.crds import PARTS
from konverge.sim.kubevirt.simulated import SimulatedKubeVirt

__all__ = ["PARTS", "QUICK", "SimulatedKubeVirt", "Timings"]
