"""The power of a machine: who owns it, pausing, and restarts.

What is declared is kept: with `powerState` (or `running`) the operator owns the run strategy, and a `virtctl stop` is
undone, once, with an event that says where to stop the machine instead. What is not declared is left to whichever user
acts: without both, a new machine gets the strategy that `startStrategy` gives, and from then on it is as KubeVirt's own
tools leave it, until the spec gives another one to a machine that is on. So in neither case does the operator fight
with its users.

Pausing has no field in KubeVirt, only a call to its own API, made when it is needed.

A machine is restarted once for each new `restartAt`; and for changes that need it, where `updatePolicy` is Automatic or
no guest has started yet. A restart is the deletion of the running instance: KubeVirt makes the next one (where it takes
the end of an instance for what was wanted, it is asked for the next). Which instance a restart is about is written on
the VirtualMachine before, so that an operator that is killed in between restarts neither twice nor never.
"""

from __future__ import annotations

from konverge.client import Call, Conflict, NotFound
from konverge.objects import Resource
from konverge.objects.times import parse_time
from konverge.operators.wukong.effective_spec import run_strategy, strategy_when_on, wanted_power
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.status import VIRTUAL_MACHINE_READY, Trouble
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import find_condition, is_true

CALLS = Resource("subresources.kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
MACHINES = Resource("subresources.kubevirt.io", "v1", "VirtualMachine", "virtualmachines")


async def pause(state: ReconcileState) -> None:
    """Pause or go on, where the spec says which."""
    vmi, spec = state.vmi, state.spec.spec
    if vmi is None or vmi.status.phase != "Running" or vmi.metadata.deletion_timestamp or not is_declared(spec):
        return
    wanted, paused = wanted_power(spec) == "Paused", is_true(vmi.status.conditions, "Paused")
    if wanted == paused:
        return
    word = "pause" if wanted else "unpause"
    try:
        await _ask(state, CALLS, vmi, word)
    except NotFound:
        message = f"KubeVirt does not offer {word} ({CALLS.group} is not served)"
        state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "PauseUnavailable", message))
        return
    state.again = True
    state.ctx.event("Paused" if wanted else "Unpaused", "as spec.powerState says")


async def _ask(state: ReconcileState, resource: Resource, vmi: VirtualMachineInstance, word: str) -> None:
    """A call to KubeVirt's own API; a machine and its instance have the same name."""
    place, content = vmi.metadata, "application/json"
    call = Call("update", resource, place.namespace, place.name, subresource=word, body=b"{}", content_type=content)
    await state.ctx.client.caller.call(call)


ALWAYS, HALTED = "Always", "Halted"
GIVEN = "vm.novasphere.dev/run-strategy"
"""On a VirtualMachine: the strategy that the spec gave it last, unless that is Always. A strategy that differs from it
is a user's; a spec that differs from it has changed since, or had to wait until the machine was on."""
HALTED_FROM = "vm.novasphere.dev/halted-from"
"""On a VirtualMachine that is off for a restore: the strategy that it had before."""


def is_declared(spec: WukongSpec) -> bool:
    """Whether the spec insists on a power state."""
    return spec.power_state is not None or spec.running is not None


def strategy_for(spec: WukongSpec, live: VirtualMachine | None, *, halt: bool = False) -> str:
    """What the machine's `runStrategy` is to be. `halt` is for a restore, which needs it off."""
    if halt:
        return HALTED
    desired = run_strategy(spec)
    if is_declared(spec):
        # Manual leaves starting to others; a user who declares the power does not.
        return ALWAYS if desired == "Manual" else desired
    if live is None:
        return desired
    present = live.metadata.annotations.get(HALTED_FROM) or live.spec.run_strategy or desired
    on = strategy_when_on(spec)
    return present if present == HALTED or on == _given(live) else on


def strategy_mark(spec: WukongSpec, live: VirtualMachine | None, strategy: str) -> dict[str, str]:
    """What is to stand on a machine that gets a strategy: what of it the spec gave."""
    given = _given(live) if strategy == HALTED else strategy if is_declared(spec) else strategy_when_on(spec)
    return {} if given == ALWAYS else {GIVEN: given}


def _given(live: VirtualMachine | None) -> str:
    return live.metadata.annotations.get(GIVEN, ALWAYS) if live is not None else ALWAYS


def halt_mark(live: VirtualMachine | None, *, halt: bool) -> dict[str, str]:
    """What is to stand on a machine that is switched off for a restore, so that it is on again afterwards."""
    if live is None or not halt:
        return {}
    return {HALTED_FROM: live.metadata.annotations.get(HALTED_FROM) or live.spec.run_strategy or HALTED}


def overruled(spec: WukongSpec, live: VirtualMachine, desired: str) -> bool:
    """Whether a user stopped or started the machine against what is declared."""
    present = live.spec.run_strategy
    return is_declared(spec) and bool(present) and (present == HALTED) != (desired == HALTED)


ASKED = "vm.novasphere.dev/restart-at"
INSTANCE = "vm.novasphere.dev/restart-of"
"""The uid of the instance that was there when the restart was asked for; empty when there was none."""

_STAYS_OFF = ("Manual", "RerunOnFailure")
"""Strategies with which KubeVirt starts nothing for an instance that was deleted."""

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
    if vmi is not None and vmi.metadata.uid == due:
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
        if strategy in _STAYS_OFF:
            await _ask(state, MACHINES, vmi, "restart")
        else:
            await state.ctx.client.delete(VirtualMachineInstance, place.name, place.namespace, uid=place.uid)
    except (NotFound, Conflict):
        return  # gone already, or another one by now; or KubeVirt is at it
    state.ctx.event("Restarted", f"the virtual machine is restarted: {why}")
