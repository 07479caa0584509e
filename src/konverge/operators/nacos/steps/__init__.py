"""The six steps of a round, in the document's order: each is a module that reads like its paragraph.

    PreCheck → PGEnsure → RotateAdmin → MakeEnsure → CheckAndMakeHeal (CheckKind, CheckNacos) → UpdateStatus

A step that finds nothing to object to returns; one that changed something, or cannot go on, raises `Stop` and with it
ends the round. `ending.py` is what happens then.
"""

from konverge.operators.nacos.steps.check_and_make_heal import check_and_make_heal
from konverge.operators.nacos.steps.ending import finish, interrupted
from konverge.operators.nacos.steps.make_ensure import make_ensure
from konverge.operators.nacos.steps.pg_ensure import pg_ensure
from konverge.operators.nacos.steps.pre_check import pre_check
from konverge.operators.nacos.steps.rotate_admin import rotate_admin
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import Stop
from konverge.operators.nacos.steps.tools import Options, Tools
from konverge.operators.nacos.steps.update_status import update_status

STEPS = (pre_check, pg_ensure, rotate_admin, make_ensure, check_and_make_heal, update_status)

__all__ = ["STEPS", "Options", "Round", "Stop", "Tools", "finish", "interrupted"]
