"""Types of objects: the built-in kinds', and custom resources'. See `node` for what a type is."""

from konverge.apiserver.schema.builtin import lookup, object_meta
from konverge.apiserver.schema.node import DEDUCED, UNTYPED, Field, Kind, TypeNode
from konverge.apiserver.schema.structural import from_structural

__all__ = ["DEDUCED", "UNTYPED", "Field", "Kind", "TypeNode", "from_structural", "lookup", "object_meta"]
