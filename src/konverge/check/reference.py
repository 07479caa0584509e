"""The reference: what the operator does when nothing goes wrong, and which fields vary by themselves.

Two runs with different seeds: what differs between them is masked, and said.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from konverge.check.differences import Masks, differences
from konverge.check.folding import folded
from konverge.check.model import Checkpoint, Obj, Run


class Reference(msgspec.Struct, kw_only=True):
    """A run without perturbations, and what is not compared with it."""

    run: Run
    masks: Masks
    varying: tuple[str, ...] = ()
    """`resource:path` that differed between the two reference runs, for the report."""

    def checkpoint(self, name: str) -> Checkpoint | None:
        return next((item for item in self.run.checkpoints if item.step == name), None)


def reference_of(first: Run, second: Run, masks: Masks | None = None) -> Reference:
    """The first run, with what the second showed to vary added to the masks."""
    given = masks or Masks()
    varying = sorted(set(_varying(first, second, given)))
    exact = given.exact | frozenset(varying)
    return Reference(run=first, masks=Masks(given.patterns, exact), varying=tuple(varying))


def _varying(first: Run, second: Run, masks: Masks) -> Iterator[str]:
    for one, other in zip(first.checkpoints, second.checkpoints, strict=False):
        ours, theirs = by_folded_name(one.state), by_folded_name(other.state)
        for key in ours.keys() & theirs.keys():
            resource = key.partition(" ")[0]
            for left, right in zip(ours[key], theirs[key], strict=False):
                for path, _, _ in differences(left, right):
                    if not masks.hides(resource, path):
                        yield f"{resource}:{path}"


def by_folded_name(state: dict[str, Obj]) -> dict[str, list[Obj]]:
    """Objects under names that two runs share; several may have the same, in the order of their own names."""
    found: dict[str, list[Obj]] = {}
    for key in sorted(state):
        found.setdefault(folded(key), []).append(state[key])
    return found
