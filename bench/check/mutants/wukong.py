"""Mistakes in the Wukong operator."""

from __future__ import annotations

from typing import Any

from bench._mutants import Mutant, Patch, replaced, returning
from konverge.client import ClientError
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong import deletion, reconciler
from konverge.operators.wukong.kinds import VirtualMachine
from konverge.operators.wukong.steps import conclude as concluding
from konverge.operators.wukong.steps import disks
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import Result

_make = ReconcileState.make
_conclude = concluding.conclude


def finalizer_kept() -> Patch:
    """The machine that others deleted already is waited for."""

    async def machine(state: Any) -> list[str]:
        vm = await state.ctx.get(VirtualMachine, f"{state.name}-vm")
        if vm is None and not getattr(state.definitions, "seen", False):
            return ["the machine"]
        state.definitions.seen = True
        return await _machine(state)

    _machine = deletion._machine
    return replaced(deletion, _machine=machine)


def flag_in_memory() -> Patch:
    """The cloud-init Secret is made once in the life of a process."""

    async def make(self: Any, child: Any) -> bool:
        if isinstance(child, Secret):
            if getattr(self.definitions, "secret", None) == self.ctx.obj.metadata.uid:
                return False
            self.definitions.secret = self.ctx.obj.metadata.uid
        return await _make(self, child)

    return replaced(ReconcileState, make=make)


def generation_ahead() -> Patch:
    async def build(self: Any, state: Any) -> None:
        if state.status.observed_generation != state.generation:
            state.status.observed_generation = state.generation
            await state.ctx.save_status()
            await _build(self, state)

    _build = reconciler.WukongReconciler._build
    return replaced(reconciler.WukongReconciler, _build=build)


def ready_without_looking() -> Patch:
    async def conclude(state: Any) -> Result | None:
        result = await _conclude(state)
        if state.vm is not None and state.status.phase != "Running":
            state.status.phase = "Running"
            concluding._say(state, "Ready", True, "Made", "the machine is made")
            await state.ctx.save_status()
        return result

    return replaced(reconciler, conclude=conclude)


def no_repair() -> Patch:
    """A machine that others deleted is not made again."""

    async def make(self: Any, child: Any) -> bool:
        known = self.status.phase not in ("", "Pending", "Creating")
        if child.metadata.name.endswith("-vm") and known:
            return False
        return await _make(self, child)

    return replaced(ReconcileState, make=make)


def growth_forgotten() -> Patch:
    """A disk keeps the size that it was made with."""
    return replaced(disks, may_grow=returning(False))


def error_swallowed() -> Patch:
    """What could not be made counts as made, for the life of a process."""

    async def make(self: Any, child: Any) -> bool:
        given_up = self.definitions.__dict__.setdefault("given_up", set())
        key = (self.ctx.obj.metadata.uid, child.metadata.name, type(child))
        if key in given_up:
            return False
        try:
            return await _make(self, child)
        except ClientError:
            given_up.add(key)
            return False

    return replaced(ReconcileState, make=make)


def foreign_disk_taken() -> Patch:
    """A claim with the right name is ours, whoever made it."""
    return replaced(disks, _foreign=returning(None))


MUTANTS = [
    Mutant("finalizer-kept", "a machine that is gone already is waited for at the deletion", finalizer_kept),
    Mutant("flag-in-memory", "the Secret for cloud-init is made once in the life of a process", flag_in_memory),
    Mutant("generation-ahead", "observedGeneration is saved before the work, and guards it", generation_ahead),
    Mutant("ready-without-looking", "it is said to run as soon as the machine is made", ready_without_looking),
    Mutant("no-repair", "a machine that others delete is not made again", no_repair),
    Mutant("growth-forgotten", "a disk keeps the size that it was made with", growth_forgotten),
    Mutant("error-swallowed", "what could not be written is never tried again", error_swallowed),
    Mutant("foreign-disk-taken", "a claim of others with the right name is taken", foreign_disk_taken),
]
