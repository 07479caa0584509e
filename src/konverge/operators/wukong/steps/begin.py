"""Steps 3 and 5: what a new Wukong gets before anything is made for it. Either is written alone, and the reconcile
starts again at once.
"""

from __future__ import annotations

from konverge.operators.wukong.conditions import READY, say
from konverge.operators.wukong.resource import FINALIZER
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime.finalizers import add_finalizer


async def finalizer(state: ReconcileState) -> bool:
    """Step 3: from here on nothing goes without the operator. True when it was not there."""
    return await add_finalizer(state.ctx, FINALIZER)


async def initial_status(state: ReconcileState) -> bool:
    """Step 5: accepted. True when this is the first that is said about it."""
    status = state.status
    if status.phase:
        return False
    status.phase, status.message = "Pending", "accepted"
    say(status, READY, False, "Accepted", "accepted", generation=state.generation)
    return await state.ctx.save_status()
