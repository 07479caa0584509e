"""Who owns the power of a machine. Pure.

What is declared is kept: with `powerState` (or `running`) the operator owns the run strategy, and a `virtctl stop` is
undone, once, with an event that says where to stop the machine instead. What is not declared is left to whichever user
acts: without both, a new machine gets the strategy that `startStrategy` gives, and from then on it is as KubeVirt's own
tools leave it. So in neither case does the operator fight with anybody.
"""

from __future__ import annotations

from konverge.operators.wukong.effective_spec import run_strategy, wanted_power
from konverge.operators.wukong.kinds import VirtualMachine
from konverge.operators.wukong.spec import WukongSpec

HALTED = "Halted"
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
        return "Always" if desired == "Manual" else desired
    if live is None:
        return desired
    return live.metadata.annotations.get(HALTED_FROM) or live.spec.run_strategy or desired


def halt_mark(live: VirtualMachine | None, *, halt: bool) -> dict[str, str]:
    """What is to stand on a machine that is switched off for a restore, so that it is on again afterwards."""
    if live is None or not halt:
        return {}
    return {HALTED_FROM: live.metadata.annotations.get(HALTED_FROM) or live.spec.run_strategy or HALTED}


def overruled(spec: WukongSpec, live: VirtualMachine, desired: str) -> bool:
    """Whether a user stopped or started the machine against what is declared."""
    present = live.spec.run_strategy
    return is_declared(spec) and bool(present) and (present == HALTED) != (desired == HALTED)


def wants_pause(spec: WukongSpec) -> bool:
    return wanted_power(spec) == "Paused"
