"""What can be wrong with a strategic merge patch.

The API server answers 500 to most of it, as its handler does not know the errors of the merge, and 400 to a few
formats. Upstream: apimachinery/pkg/util/mergepatch/errors.go.
"""

from __future__ import annotations

from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj


class StrategicError(Exception):
    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


BAD_PRIMITIVE_LIST = StrategicError("invalid patch format of primitive list", 400)
BAD_RETAIN_KEYS = StrategicError("invalid patch format of retainKeys", 400)
BAD_SET_ORDER = StrategicError("invalid patch format of setElementOrder list", 400)


def no_merge_key(item: Obj, merge_key: str) -> StrategicError:
    return StrategicError(f"map: {go_value(item)} does not contain declared merge key: {merge_key}")


def no_such_field(name: str, node: TypeNode) -> StrategicError:
    return StrategicError(f'unable to find api field in struct {node.struct_name} for the json field "{name}"')
