"""`TypeNode`: one tree that serves decoding, strategic merge and server-side apply.

A node describes a type as three parties see it: Go's JSON codec (names of Go types, omitempty, pointers: the built-in
kinds are Go structs upstream, and their errors and their omissions are part of the wire contract), strategic
merge (`patchStrategy`, `patchMergeKey`) and structured merge (list types, map types, key defaults). What belongs to a
*use* of a type stands on the `Field`; what belongs to the type itself on the node. Nodes are shared and immutable once
built; recursive types are recursive objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal


class Kind(Enum):
    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    SCALAR = "scalar"
    ANY = "any"


ListType = Literal["atomic", "set", "map"]

# How structured merge sees a scalar: these are checked by an apply; every other type takes any scalar.
_CHECKED_SCALARS = {
    "string": "string",
    "bytes": "string",
    "int32": "numeric",
    "int64": "numeric",
    "integer": "numeric",
    "float64": "numeric",
    "bool": "boolean",
}


@dataclass(slots=True, eq=False)
class Field:
    """A member of a struct."""

    name: str
    node: TypeNode
    omit: Literal["", "omitempty", "omitzero"] = "omitempty"
    pointer: bool = False
    embedded: str = ""
    """Names of the Go structs through which the field comes, each followed by a dot, as errors print them."""
    strategy: str = ""
    """"merge", "replace" or ""."""
    merge_key: str = ""

    def __post_init__(self) -> None:  # `retainKeys` is for clients: a patch says itself which keys it retains
        self.strategy = next((part for part in self.strategy.split(",") if part != "retainKeys"), "")


@dataclass(slots=True, eq=False, repr=False)
class TypeNode:
    """A type. `fields` of structs, `element` of lists and maps (and of structs that admit undeclared fields)."""

    kind: Kind
    scalar: str = ""
    go: str = ""
    fields: dict[str, Field] = field(default_factory=dict)
    element: TypeNode | None = None
    atomic: bool = False
    """Owned as a whole: an atomic map or struct, a list that is neither set nor map."""
    list_type: ListType = "atomic"
    map_keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = field(default_factory=dict)
    compiled: Any = None
    """The decoder compiled for this node; it lives here so that it is shared as the node is."""
    lister: Any = None
    """The function that lists the paths of a value, compiled likewise (konverge.apiserver.merge.path_listing)."""

    @property
    def struct_name(self) -> str:
        """The Go name without its package: `v1.ObjectMeta` -> `ObjectMeta`."""
        return self.go.rpartition(".")[2]

    @property
    def checked_scalar(self) -> str:
        return _CHECKED_SCALARS.get(self.scalar, "untyped")

    def child(self, name: str) -> TypeNode | None:
        """The type of the member `name`; None when it is not declared."""
        declared = self.fields.get(name)
        return self.element if declared is None else declared.node

    def __repr__(self) -> str:
        return f"<TypeNode {self.kind.value} {self.go or self.scalar}>"


UNTYPED = TypeNode(Kind.ANY, atomic=True)
"""Anything, owned as a whole (RawExtension, items of untyped lists)."""
UNTYPED.element = UNTYPED

DEDUCED = TypeNode(Kind.ANY)
"""Anything: maps by member, lists as a whole (custom resources without a schema, JSON values)."""
DEDUCED.element = DEDUCED
