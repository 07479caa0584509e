"""Pausing a running guest. KubeVirt has no field for that, only a call to its own API, made when it is needed."""

from __future__ import annotations

from konverge.client import Call, NotFound
from konverge.objects import Resource
from konverge.operators.wukong.conditions import VIRTUAL_MACHINE_READY, Trouble
from konverge.operators.wukong.kinds import VirtualMachineInstance
from konverge.operators.wukong.power import is_declared, wants_pause
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import is_true

CALLS = Resource("subresources.kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")


async def pause(state: ReconcileState) -> None:
    """Pause or go on, where the spec says which."""
    vmi, spec = state.vmi, state.spec.spec
    if vmi is None or vmi.status.phase != "Running" or vmi.metadata.deletion_timestamp or not is_declared(spec):
        return
    wanted, paused = wants_pause(spec), is_true(vmi.status.conditions, "Paused")
    if wanted == paused:
        return
    word = "pause" if wanted else "unpause"
    try:
        await _call(state, vmi, word)
    except NotFound:
        message = f"KubeVirt does not offer {word} ({CALLS.group} is not served)"
        state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "PauseUnavailable", message))
        return
    state.again = True
    state.ctx.event("Paused" if wanted else "Unpaused", "as spec.powerState says")


async def _call(state: ReconcileState, vmi: VirtualMachineInstance, word: str) -> None:
    place = vmi.metadata
    call = Call(
        "update", CALLS, place.namespace, place.name, subresource=word, body=b"{}", content_type="application/json"
    )
    await state.ctx.client.caller.call(call)
