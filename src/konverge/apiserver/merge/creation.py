"""What the creator of an object owns: everything that an empty object of its type does not have.

Comparing the object with that empty one, without what is never owned (`managed_fields.tracked`), gives the same; but
this runs on every creation, and most of what such a comparison looks at is known beforehand.
"""

from __future__ import annotations

from functools import lru_cache

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.elements import member
from konverge.apiserver.merge.field_set import SELF, FieldSet
from konverge.apiserver.merge.owner import Owner
from konverge.apiserver.merge.path_listing import everything
from konverge.apiserver.merge.typed import compare
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.schema.zero_values import zero
from konverge.apiserver.strategy import Obj

IDENTITY = frozenset({"apiVersion", "kind"})
SERVER_SET = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""Members of metadata that no manager owns. Upstream: stripSet (managedfields/internal/stripmeta.go)."""


def blank(owner: Owner) -> Obj:
    """What an object that does not exist yet is compared with: Go's zero value, or nothing for a custom resource."""
    if owner.node.go:
        return _zero(owner.node)
    return {"apiVersion": owner.api_version, "kind": owner.kind}


@lru_cache(maxsize=512)
def _zero(node: TypeNode) -> Obj:
    zero_value: Obj = zero(node)
    return zero_value


def owned(new: Obj, owner: Owner) -> FieldSet:
    """The fields of a creation's entry. Raises TypedError."""
    node = owner.node
    before = _zero(node) if node.go else {}
    owned_fields: FieldSet = {}
    filled: list[str] = []
    for name, value in new.items():
        if name == "metadata":
            if below := _of_metadata(node, value):
                owned_fields["f:metadata"] = below
        elif name in before:
            filled.append(name)
        elif name not in IDENTITY:
            owned_fields[f"f:{name}"] = everything(member(node, name), value)
    if filled:
        change = compare(node, {name: before[name] for name in filled}, {name: new[name] for name in filled})
        owned_fields |= field_set.union(change.modified, change.added)
    return owner.may_own(owned_fields)


def _of_metadata(node: TypeNode, metadata: Obj) -> FieldSet:
    theirs = {name: value for name, value in metadata.items() if name not in SERVER_SET}
    if not theirs:
        return theirs
    fields = everything(member(node, "metadata"), theirs)
    fields.pop(SELF, None)  # metadata itself is never owned
    return fields
