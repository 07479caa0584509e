"""Pausing a running guest. KubeVirt has no field for that, only a call to its own API, made when it is needed."""

from __future__ import annotations

from konverge.client import Call, NotFound
from konverge.objects import Resource
from konverge.operators.wukong.conditions import VIRTUAL_MACHINE_READY, Trouble
from konverge.operators.wukong.kinds import VirtualMachineInstance
from konverge.operators.wukong.power import is_declared, wants_pause
from konverge.operators.wukong.steps.round import Round
from konverge.runtime import is_true

CALLS = Resource("subresources.kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")


async def pause(round: Round) -> None:
    """Pause or go on, where the spec says which."""
    vmi, spec = round.vmi, round.spec.spec
    if vmi is None or vmi.status.phase != "Running" or vmi.metadata.deletion_timestamp or not is_declared(spec):
        return
    wanted, paused = wants_pause(spec), is_true(vmi.status.conditions, "Paused")
    if wanted == paused:
        return
    word = "pause" if wanted else "unpause"
    try:
        await _call(round, vmi, word)
    except NotFound:
        message = f"KubeVirt does not offer {word} ({CALLS.group} is not served)"
        round.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "PauseUnavailable", message))
        return
    round.again = True
    round.ctx.event("Paused" if wanted else "Unpaused", "as spec.powerState says")


async def _call(round: Round, vmi: VirtualMachineInstance, word: str) -> None:
    place = vmi.metadata
    call = Call(
        "update", CALLS, place.namespace, place.name, subresource=word, body=b"{}", content_type="application/json"
    )
    await round.ctx.client.caller.call(call)
