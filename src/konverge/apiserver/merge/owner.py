"""`Owner`: who writes, and what the functions of ownership need to know of the request."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.apiserver.merge.field_set import FieldSet
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj

_MANAGER_LIMIT = 128  # upstream: validation.FieldManagerMaxLength
Filter = Callable[[FieldSet], FieldSet]
View = tuple[TypeNode, Obj]
"""An object in a version, and that version's type."""
Convert = Callable[[Obj, str, str], View | None]


class Unconvertible(Exception):
    """An object has no form in a version that a manager's entry is in; the message is upstream's."""

    def during(self, what: str) -> Unconvertible:
        return Unconvertible(f"{what}: {self}")


def _all(fields: FieldSet) -> FieldSet:
    return fields


class Owner(msgspec.Struct, kw_only=True):
    node: TypeNode
    manager: str
    api_version: str
    kind: str
    now: str
    """This second, as a `Time`: the time of the entry if it changes."""
    subresource: str = ""
    may_own: Filter = _all
    """Takes the fields out that this endpoint resets (konverge.apiserver.merge.reset_fields)."""
    convert: Convert | None = None
    """An object of one version (an apiVersion) in another one; None where that is not known any more. Raises
    Unconvertible. Without it, all versions have one form."""

    def view(self, obj: Obj, source: str, target: str) -> View | None:
        if self.convert is None or source == target == self.api_version:
            return self.node, obj
        return self.convert(obj, source, target)

    @property
    def gvk(self) -> str:
        group, _, version = self.api_version.rpartition("/")
        return f"{group}/{version}, Kind={self.kind}"


# upstream: managerOrUserAgent (apiserver endpoints/handlers/create.go)
def manager_of(field_manager: str, user_agent: str) -> str:
    """The manager of a write: what the client says, or the name of its program."""
    if field_manager:
        return field_manager
    name = user_agent.partition("/")[0]
    if name and name.isprintable():
        return name[:_MANAGER_LIMIT]
    return "".join(character for character in name if character.isprintable())[:_MANAGER_LIMIT] or "unknown"
