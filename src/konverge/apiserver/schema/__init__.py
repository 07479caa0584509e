"""Types of objects: the built-in kinds', and custom resources'. See `node` for what a type is."""

from konverge.apiserver.schema.builtin import lookup, object_meta
from konverge.apiserver.schema.custom import from_structural
from konverge.apiserver.schema.node import DEDUCED, UNTYPED, Field, Kind, TypeNode

__all__ = ["DEDUCED", "UNTYPED", "Field", "Kind", "TypeNode", "from_structural", "lookup", "object_meta"]
