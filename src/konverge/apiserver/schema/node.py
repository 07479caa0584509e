"""`TypeNode`: one tree that serves decoding, strategic merge and server-side apply.

A node describes a type as three parties see it: Go's JSON codec (names of Go types, omitempty, pointers: the built-in
kinds are Go structs upstream, and their errors and their omissions are part of the wire contract), strategic
merge (`patchStrategy`, `patchMergeKey`) and structured merge (list types, map types, key defaults). What belongs to a
*use* of a type stands on the `Field`; what belongs to the type itself on the node. Nodes are shared and immutable once
built; recursive types are recursive objects.
"""

from __future__ import annotations

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


class Field:
    """A member of a struct."""

    __slots__ = ("embedded", "merge_key", "name", "node", "omit", "pointer", "retain_keys", "strategy")

    def __init__(
        self,
        name: str,
        node: TypeNode,
        *,
        omit: Literal["", "omitempty", "omitzero"] = "omitempty",
        pointer: bool = False,
        embedded: str = "",
        strategy: str = "",
        merge_key: str = "",
    ) -> None:
        self.name = name
        self.node = node
        self.omit = omit
        self.pointer = pointer
        self.embedded = embedded
        """Names of the Go structs through which the field comes, each followed by a dot, as errors print them."""
        parts = strategy.split(",")
        self.retain_keys = "retainKeys" in parts
        self.strategy = next((part for part in parts if part != "retainKeys"), "")
        """"merge", "replace" or ""."""
        self.merge_key = merge_key


class TypeNode:
    """A type. `fields` of structs, `element` of lists and maps (and of structs that admit undeclared fields)."""

    __slots__ = (
        "atomic",
        "compiled",
        "element",
        "fields",
        "go",
        "key_defaults",
        "kind",
        "list_type",
        "lister",
        "map_keys",
        "scalar",
    )

    def __init__(
        self,
        kind: Kind,
        *,
        scalar: str = "",
        go: str = "",
        fields: dict[str, Field] | None = None,
        element: TypeNode | None = None,
        atomic: bool = False,
        list_type: ListType = "atomic",
        map_keys: tuple[str, ...] = (),
        key_defaults: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.scalar = scalar
        self.go = go
        self.fields: dict[str, Field] = fields or {}
        self.element = element
        self.atomic = atomic
        """Owned as a whole: an atomic map or struct, a list that is neither set nor map."""
        self.list_type = list_type
        self.map_keys = map_keys
        self.key_defaults = key_defaults or {}
        self.compiled: Any = None
        """The decoder compiled for this node; it lives here so that it is shared as the node is."""
        self.lister: Any = None
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
        field = self.fields.get(name)
        return self.element if field is None else field.node

    def __repr__(self) -> str:
        return f"<TypeNode {self.kind.value} {self.go or self.scalar}>"


UNTYPED = TypeNode(Kind.ANY, atomic=True)
"""Anything, owned as a whole (RawExtension, items of untyped lists)."""
UNTYPED.element = UNTYPED

DEDUCED = TypeNode(Kind.ANY)
"""Anything: maps by member, lists as a whole (custom resources without a schema, JSON values)."""
DEDUCED.element = DEDUCED
