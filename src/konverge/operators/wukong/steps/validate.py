"""Step 4: can the spec be acted upon? The definition refuses most of what is wrong; this is for the rest."""

from __future__ import annotations

import msgspec

from konverge.objects import from_dict
from konverge.operators.wukong.conditions import SPEC_VALID, Trouble
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.validation import problems


async def validate(state: ReconcileState) -> None:
    """Read the spec, and note what is wrong with it."""
    obj = state.ctx.obj
    try:
        wukong = Wukong(metadata=obj.metadata, spec=from_dict(WukongSpec, obj.spec), status=obj.status)
    except msgspec.ValidationError as error:
        state.trouble.append(Trouble(SPEC_VALID, "Malformed", f"the spec cannot be read: {error}", failed=True))
        return
    errors = problems(wukong)
    if errors:
        state.trouble.append(Trouble(SPEC_VALID, "Invalid", "; ".join(errors), failed=True))
        return
    state.wukong = wukong
