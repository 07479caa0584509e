"""The reference: what the operator does when nothing goes wrong, and which fields vary by themselves.

Two runs with different seeds: what differs between them is masked, and said.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from konverge.check.differences import Masks
from konverge.check.model import Checkpoint, Obj, Run
from konverge.check.normal import States, compared, counted, made_by_others, normal


class Reference(msgspec.Struct, kw_only=True):
    """A run without perturbations, and what is not compared with it."""

    run: Run
    masks: Masks
    varying: tuple[str, ...] = ()
    """`resource:path` that differed between the two reference runs, for the report."""
    unsteady: frozenset[str] = frozenset()
    """Folded keys of which the two reference runs had different numbers: how many there are says nothing."""

    def checkpoint(self, name: str) -> Checkpoint | None:
        return next((item for item in self.run.checkpoints if item.step == name), None)

    def beside(self, run: Run, checkpoint: Checkpoint) -> Checkpoint | None:
        """The reference's state after the same steps; None if the run did others before, or was refused."""
        position = next((n for n, step in enumerate(run.steps) if step.name == base_step(checkpoint)), None)
        if position is None or run.steps[: position + 1] != self.run.steps[: position + 1]:
            return None
        expected = self.checkpoint(run.steps[position].name)
        return expected if expected is not None and expected.rested else None


def base_step(checkpoint: Checkpoint) -> str:
    """The name of the step after which it was taken, or after which something went wrong at rest."""
    return checkpoint.step.removesuffix(", then")


def reference_of(first: Run, second: Run, masks: Masks | None = None) -> Reference:
    """The first run, with what the second showed to vary added to the masks."""
    given = masks or Masks()
    others = made_by_others((first, second))
    varying: set[str] = set()
    unsteady: set[str] = set()
    for one, other in zip(first.checkpoints, second.checkpoints, strict=False):
        ours, theirs = by_folded_name(one.state), by_folded_name(other.state)
        varying.update(_varying(ours, theirs, given, others))
        unsteady.update(
            key
            for key in ours.keys() | theirs.keys()
            if counted(key, ours.get(key, []), derived=key not in others)
            != counted(key, theirs.get(key, []), derived=key not in others)
        )
    exact = given.exact | frozenset(varying)
    known = Masks(given.patterns, exact)
    return Reference(run=first, masks=known, varying=tuple(sorted(varying)), unsteady=frozenset(unsteady))


def _varying(ours: States, theirs: States, masks: Masks, others: frozenset[str]) -> Iterator[str]:
    for key in ours.keys() & theirs.keys():
        resource = key.partition(" ")[0]
        for left, right in zip(ours[key], theirs[key], strict=False):
            for path, _, _ in compared(key, left, right, masks, derived=key not in others):
                yield f"{resource}:{path}"


def by_folded_name(state: dict[str, Obj]) -> States:
    """Objects under names that two runs share, with values that they can share; several may have the same name."""
    return normal(state)
