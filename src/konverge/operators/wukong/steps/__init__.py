"""The steps of a reconcile, in the document's order; each is a function that can be read and tested alone.

    1 get (the runtime)   2 deletion (deletion.py)   3 finalizer   4 validate   5 initial_status
    6 networks   7 disks   8 machine   9 observe   10 conclude

Steps 4 to 9 note what they find in the `ReconcileState`; the last one reports it. `look` and `restore` are about the
machine as it is and whether it is being put back, which the steps after them go by.
"""

from konverge.operators.wukong.steps.begin import finalizer, initial_status
from konverge.operators.wukong.steps.conclude import conclude, report
from konverge.operators.wukong.steps.disks import disks
from konverge.operators.wukong.steps.machine import look, machine
from konverge.operators.wukong.steps.networks import networks
from konverge.operators.wukong.steps.observe import observe
from konverge.operators.wukong.steps.restore import restore
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.steps.validate import validate

BUILDING = (restore, networks, disks, machine)
"""The steps that make something: for a spec that can be acted upon."""

__all__ = [
    "BUILDING",
    "ReconcileState",
    "conclude",
    "disks",
    "finalizer",
    "initial_status",
    "look",
    "machine",
    "networks",
    "observe",
    "report",
    "restore",
    "validate",
]
