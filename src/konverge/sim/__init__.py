"""The simulated cluster: a whole Kubernetes in one process, on virtual time if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster as Cluster
    from konverge.sim.kubelet.behaviour import Rule as Rule
    from konverge.sim.kubelet.pace import FAST as FAST
    from konverge.sim.kubelet.pace import Pace as Pace
    from konverge.sim.loop import VirtualLoop as VirtualLoop
    from konverge.sim.loop import run as run

# Lazy: the loop alone is wanted by many who need no cluster.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.sim.cluster": "Cluster",
        "konverge.sim.kubelet.behaviour": "Rule",
        "konverge.sim.kubelet.pace": "FAST Pace",
        "konverge.sim.loop": "VirtualLoop run",
    },
)
