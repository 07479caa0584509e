"""Restarts: once for each new `restartAt`; and for changes that need one, where `updatePolicy` is Automatic or no guest
has started yet.

A restart is the deletion of the running instance: KubeVirt makes the next one (where starting is left to people, it is
asked for it). Which instance a restart is about is written on the VirtualMachine before, so that an operator that is
killed in between restarts neither twice nor never.
"""

from __future__ import annotations

from konverge.client import Call, Conflict, NotFound
from konverge.objects import ObjectMeta, Resource
from konverge.objects.times import parse_time
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import find_condition

MACHINES = Resource("subresources.kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
ASKED = "vm.novasphere.dev/restart-at"
INSTANCE = "vm.novasphere.dev/restart-of"
"""The uid of the instance that was there when the restart was asked for; empty when there was none."""

NOT_YET = ("", "Pending", "Scheduling")
"""Phases in which no guest runs: an instance that cannot start is replaced by the newer spec without being asked."""


def restart_marks(state: ReconcileState) -> dict[str, str]:
    """What is to stand on the VirtualMachine about restarts."""
    token = state.spec.spec.restart_at
    if not token:
        return {}
    live = state.vm.metadata.annotations if state.vm is not None else {}
    if live.get(ASKED) == token:
        return {ASKED: token, INSTANCE: live.get(INSTANCE, "")}
    known = state.vm is not None and state.status.last_restart != token
    return {ASKED: token, INSTANCE: state.vmi.metadata.uid if known and state.vmi is not None else ""}


async def restart(state: ReconcileState) -> None:
    """End the instance that is to be restarted, if it is still there. After the marks are written."""
    vm, vmi, token = state.vm, state.vmi, state.spec.spec.restart_at
    due = restart_marks(state).get(INSTANCE, "")
    if vmi is not None and due and vmi.metadata.uid == due:
        await _end(state, vmi, f"restartAt is {token}")
    elif vm is not None and vmi is not None and _outdated(state, vm, vmi):
        await _end(state, vmi, "a change needs it")
    state.status.last_restart = token or ""


def _outdated(state: ReconcileState, vm: VirtualMachine, vmi: VirtualMachineInstance) -> bool:
    """A change waits for a restart, and this instance is older than the change: or it would never end."""
    condition = find_condition(vm.status.conditions, "RestartRequired")
    if condition is None or condition.status != "True":
        return False
    if state.spec.spec.update_policy != "Automatic" and vmi.status.phase not in NOT_YET:
        return False  # a migration or a user is at work in there
    since, born = condition.last_transition_time, vmi.metadata.creation_timestamp
    return not since or not born or parse_time(born) <= parse_time(since)


async def _end(state: ReconcileState, vmi: VirtualMachineInstance, why: str) -> None:
    state.again = True
    if vmi.metadata.deletion_timestamp:
        return
    strategy = state.vm.spec.run_strategy if state.vm is not None else ""
    if strategy == "Once":
        return  # it runs once: nothing would start it again
    place = vmi.metadata
    try:
        if strategy == "Manual":
            await _ask(state, place)  # without an instance it would stay off
        else:
            await state.ctx.client.delete(VirtualMachineInstance, place.name, place.namespace, uid=place.uid)
    except (NotFound, Conflict):
        return  # gone already, or another one by now; or KubeVirt is at it
    state.ctx.event("Restarted", f"the virtual machine is restarted: {why}")


async def _ask(state: ReconcileState, place: ObjectMeta) -> None:
    call = Call(
        "update",
        MACHINES,
        place.namespace,
        place.name,
        subresource="restart",
        body=b"{}",
        content_type="application/json",
    )
    await state.ctx.client.caller.call(call)
