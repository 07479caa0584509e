"""What `ctx.apply_set` returns and raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from konverge.runtime.apply_set.members import Ref
from konverge.runtime.result import BlockedError


class NotServed(BlockedError):
    """The cluster does not serve the kind of a child that is not `optional`."""

    event_reason: ClassVar[str] = "KindNotServed"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that a set waits for."""

    ref: Ref
    step: Literal["apply", "ready", "delete"]
    """What cannot happen yet: the child is applied, becomes ready, or is deleted."""
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What a call of `ctx.apply_set` did, and what it waits for. Changes of owned children lead to the next reconcile.

    result = await ctx.apply_set([config, Child(web, after=[config])])
    set_condition(ctx.obj.status.conditions, "Ready", result.ready, "Children", result.message)
    """

    written: tuple[Ref, ...] = ()
    """Children that were created or changed; in a dry run, that would be."""
    deleted: tuple[Ref, ...] = ()
    """Members that are no longer desired and whose deletion was requested; in a dry run, all that would be deleted."""
    waiting: tuple[Waiting, ...] = ()
    skipped: tuple[Ref, ...] = ()
    """Optional children whose kind the cluster does not serve."""
    diff: str = ""
    """In a dry run: what would change."""

    @property
    def applied(self) -> bool:
        """Every child is as desired, and no other member is left. Some may not be ready yet."""
        return not self.deleted and all(entry.step == "ready" for entry in self.waiting)

    @property
    def ready(self) -> bool:
        """Every child is as desired and ready, and no other member is left."""
        return not self.deleted and not self.waiting

    @property
    def message(self) -> str:
        """The state in one line, for a condition."""
        parts = [entry.message for entry in self.waiting]
        waited = {entry.ref for entry in self.waiting}
        parts += [f"{ref} is being deleted" for ref in self.deleted if ref not in waited]
        return "; ".join(parts) or "all children are ready"
