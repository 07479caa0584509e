"""The seam for simulated programs that decide while they run what becomes of their containers, in place of a script."""

from __future__ import annotations

from typing import Protocol

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubelet.behaviour import Behaviour
from konverge.sim.kubelet.machine import PodMachine


class Director(Protocol):
    """`Kubelet.directors` has those at work; `Kubelet.look_again` makes one heard between two events."""

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        """The scripts that the pod's containers follow from now on."""

    def lived(self, machine: PodMachine, address: str) -> None:
        """The pod has come so far; `address` is its IP."""

    def forgotten(self, uid: str) -> None:
        """The pod is gone."""
