"""The conditions of a Wukong: their names, the trouble that makes them false, and how one is set.

A condition's time moves with its status only; each says which generation it is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge.operators.wukong.status import WukongStatus
from konverge.runtime import set_condition
from konverge.runtime.conditions import ConditionStatus

READY = "Ready"
SPEC_VALID = "SpecValid"
NETWORKS_CONFIGURED = "NetworksConfigured"
VOLUMES_BOUND = "VolumesBound"
VIRTUAL_MACHINE_READY = "VirtualMachineReady"
MIGRATABLE = "Migratable"
RESTART_REQUIRED = "RestartRequired"
SNAPSHOT_IN_PROGRESS = "SnapshotInProgress"
RESTORE_IN_PROGRESS = "RestoreInProgress"
PAUSED = "Paused"
DELETING = "Deleting"

LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the virtual machine cannot be as desired, for now."""

    condition: str
    """The condition that is false by it."""
    reason: str
    message: str
    failed: bool = False
    """Waiting does not help: the phase is Error, and the next look is later."""


def say(
    status: WukongStatus, type: str, value: bool | None, reason: str, message: str = "", *, generation: int
) -> bool:
    """Set one condition; None is Unknown. True when anything changed."""
    word: ConditionStatus = "Unknown" if value is None else "True" if value else "False"
    return set_condition(
        status.conditions, type, word, reason, message[:LONGEST_MESSAGE], observed_generation=generation
    )


def drop(status: WukongStatus, type: str) -> None:
    """A condition that is about nothing any more."""
    status.conditions = [condition for condition in status.conditions if condition.type != type]
