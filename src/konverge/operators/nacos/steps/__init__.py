"""The six steps of a reconcile, in the document's order.

    PreCheck → PGEnsure → RotateAdmin → MakeEnsure → CheckAndMakeHeal (CheckKind, CheckNacos) → UpdateStatus

A step returns its outcome: `CONTINUE` when the next step may run; `wait(…)` when it changed something, or has to wait
for something; `failed(…)` with one of the document's codes. The last step returns `DONE`.
"""

from konverge.operators.nacos.steps.check_and_make_heal import check_and_make_heal
from konverge.operators.nacos.steps.database import pg_ensure, rotate_admin
from konverge.operators.nacos.steps.make_ensure import make_ensure
from konverge.operators.nacos.steps.phase import pre_check, record_early_end, record_progress, update_status
from konverge.operators.nacos.steps.state import Options, ReconcileState, Tools
from konverge.operators.nacos.steps.upgrade.progress import record_upgrade

STEPS = (pre_check, pg_ensure, rotate_admin, make_ensure, check_and_make_heal, update_status)

__all__ = ["STEPS", "Options", "ReconcileState", "Tools", "record_early_end", "record_progress", "record_upgrade"]
