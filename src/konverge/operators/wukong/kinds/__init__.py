"""The kinds of others: of each, the fields that the operator reads or writes, and no more.

Nothing else is known here, so nothing else is ever written: what a newer KubeVirt puts into its objects stays its own.
"""

from __future__ import annotations

from konverge.operators.wukong.kinds.cdi import DataVolume
from konverge.operators.wukong.kinds.machines import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.kinds.migrations import VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.networks import (
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    NodeNetworkState,
)
from konverge.operators.wukong.kinds.snapshots import VirtualMachineRestore, VirtualMachineSnapshot

__all__ = [
    "DataVolume",
    "NetworkAttachmentDefinition",
    "NodeNetworkConfigurationPolicy",
    "NodeNetworkState",
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceMigration",
    "VirtualMachineRestore",
    "VirtualMachineSnapshot",
]
