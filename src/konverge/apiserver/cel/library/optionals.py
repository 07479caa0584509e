"""Optional values. Upstream: cel-go cel/library.go (optionalLib)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.cel.values import NONE, EvalError, Optional


def _non_zero(value: Any) -> Optional:
    zero = value is None or value is False or value in (0, "", b"") or (isinstance(value, (list, dict)) and not value)
    return NONE if zero else Optional(value)


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if not isinstance(item, Optional):
            raise EvalError(f"value {item} is not optional")
    return [item.value() for item in items if item.present]


def index_list(items: list[Any], index: int) -> Optional:
    return Optional(items[int(index)]) if 0 <= index < len(items) else NONE


def index_map(mapping: dict[Any, Any], key: Any) -> Optional:
    try:
        return Optional(mapping[key]) if key in mapping else NONE
    except TypeError:
        return NONE


def _through(lookup: Callable[[Any, Any], Optional]) -> Callable[[Optional, Any], Optional]:
    return lambda optional, key: lookup(optional.value(), key) if optional.present else NONE


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "optional_none": lambda: NONE,
    "optional_of": Optional,
    "optional_ofNonZeroValue": _non_zero,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "optional_hasValue": lambda optional: optional.present,
    "optional_value": lambda optional: optional.value(),
    "list_optindex_optional_int": index_list,
    "map_optindex_optional_value": index_map,
    "optional_list_optindex_optional_int": _through(index_list),
    "optional_map_optindex_optional_value": _through(index_map),
    "optional_list_index_int": _through(index_list),
    "optional_map_index_value": _through(index_map),
}
