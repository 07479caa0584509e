"""Steps 3 to 5: a new Wukong gets a finalizer and a first status before anything is made for it.

Either is written alone, and the reconcile starts again at once. In between: can the spec be acted upon? The definition
refuses most of what is wrong; `validate` is for the rest.
"""

from __future__ import annotations

import msgspec

from konverge.objects import from_dict
from konverge.operators.wukong.resource import FINALIZER, Wukong, problems
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.status import READY, SPEC_VALID, Trouble, say
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.templates import resolved_spec
from konverge.runtime.finalizers import add_finalizer


async def validate(state: ReconcileState) -> None:
    """Step 4: read the spec, with what was taken from a template, and note what is wrong with it."""
    obj = state.ctx.obj
    try:
        wukong = Wukong(metadata=obj.metadata, spec=from_dict(WukongSpec, resolved_spec(obj)))
    except msgspec.ValidationError as error:
        state.trouble.append(Trouble(SPEC_VALID, "Malformed", f"the spec cannot be read: {error}", failed=True))
        return
    errors = problems(wukong)
    if errors:
        state.trouble.append(Trouble(SPEC_VALID, "Invalid", "; ".join(errors), failed=True))
        return
    state.wukong = wukong


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
