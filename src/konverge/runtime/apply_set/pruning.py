"""Which members of a set are no longer desired, and which of them may be deleted now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from konverge.objects.meta import Object
from konverge.runtime.apply_set.members import Ref


class Member(NamedTuple):
    """An object that carries the label of the set and is controlled by its owner, as the cache shows it."""

    ref: Ref
    kind: type[Object]
    uid: str
    version: str
    deleting: bool
    after: frozenset[str]
    """Tokens of what it depends on."""


class Pruning(NamedTuple):
    """What to delete now, and what is left for later."""

    delete: tuple[Member, ...]
    held: tuple[tuple[Member, Ref], ...]
    """Members that others still depend on, each with one of those."""
    leaving: tuple[Member, ...]
    """Members whose deletion was requested before, and which are not gone yet."""

    def is_waited_for(self, member: Member) -> bool:
        """Whether other members can be deleted only when this one, with all that it owns, is gone."""
        return bool(member.after)


def prune(members: Iterable[Member], desired: Mapping[Ref, Any]) -> Pruning:
    """`members` are all that there are; `desired` are the children of the call, none of which depends on another one.

    A member is deleted when no other member depends on it: the reverse of the order in which they were made.
    """
    obsolete = [member for member in members if member.ref not in desired]
    dependants: dict[str, Ref] = {}
    for member in sorted(obsolete):
        for token in member.after:
            if token != member.ref.token:
                dependants.setdefault(token, member.ref)
    free = [member for member in obsolete if member.ref.token not in dependants]
    if not free:
        free = obsolete  # a circle, from annotations that a user wrote: no order is right
    held = tuple((member, dependants[member.ref.token]) for member in obsolete if member not in free)
    delete = tuple(member for member in free if not member.deleting)
    return Pruning(delete, held, tuple(member for member in free if member.deleting))
