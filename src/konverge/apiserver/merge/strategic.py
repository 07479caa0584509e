"""Strategic merge patch.

Like a merge patch, but lists with a merge key are merged item by item, and the patch may carry directives:
`$patch: replace | delete` in maps and in items, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`.
Upstream: StrategicMergeMapPatch (apimachinery/pkg/util/strategicpatch/patch.go).
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.apiserver.go.fmt import go_type, go_value
from konverge.apiserver.merge.element_order import Positions, arranged, bounded, check_order, left_behind, split
from konverge.apiserver.merge.json_patch import copy_json, without_nulls
from konverge.apiserver.merge.strategic_errors import (
    BAD_PRIMITIVE_LIST,
    BAD_RETAIN_KEYS,
    BAD_SET_ORDER,
    StrategicError,
    no_merge_key,
    no_such_field,
)
from konverge.apiserver.schema.node import Field, Kind, TypeNode
from konverge.apiserver.strategy import Obj

_DIRECTIVE = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_RETAIN = "$retainKeys"


def apply(node: TypeNode, live: Obj, patch: Obj) -> Obj:
    """The patched object; neither argument is changed. Raises StrategicError."""
    return _merge_map(node, copy_json(live), copy_json(patch))


def _merge_map(node: TypeNode, original: Any, patch: Obj) -> Obj:  # upstream: mergeMap
    if _DIRECTIVE in patch:
        return _whole_map(patch)
    original = {} if original is None else original
    _retain_keys(original, patch)
    _set_orders(node, original, patch)
    for key, value in patch.items():
        delete_from = key.startswith(_DELETE_FROM)
        name = _after_prefix(key, _DELETE_FROM, BAD_PRIMITIVE_LIST) if delete_from else key
        if value is None:
            original.pop(name, None)
        elif _different(original, name, value):
            if not delete_from:
                _put(original, name, without_nulls(value))
        else:
            original[name] = _merge_value(node, name, original[name], value, delete_from)
    return {key: value for key, value in original.items() if value is not _GONE}


_GONE = object()


def _put(original: Obj, name: str, value: Any) -> None:
    kept = _without_directives(value)
    if kept is _GONE:
        original.pop(name, None)
    else:
        original[name] = kept


def _different(original: Obj, name: str, value: Any) -> bool:
    """Nothing to merge with: absent, or of another JSON type."""
    return name not in original or go_type(original[name]) != go_type(value)


def _whole_map(patch: Obj) -> Obj:
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _unknown_directive(other, patch)


def _unknown_directive(directive: Any, patch: Obj) -> StrategicError:
    shown = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={go_value(directive)})"
    return StrategicError(f"unknown patch type: {shown} in map: {go_value(patch)}")


def _merge_value(node: TypeNode, name: str, original: Any, value: Any, delete_from: bool) -> Any:
    if isinstance(value, dict):
        inner, field = _member(node, name)
        return value if field.strategy == "replace" else _merge_map(inner, original, value)
    if isinstance(value, list):
        inner, field = _list_member(node, name)
        return _merge_list(inner, field, original, value, delete_from)
    return _without_directives(value)


def _member(node: TypeNode, name: str) -> tuple[TypeNode, Field]:
    """The type of a member and its patch rules. Maps of maps cannot be merged: there is no rule for their members."""
    if node.kind is Kind.MAP and not node.scalar:
        raise StrategicError("merging an object in json but data type is not struct, instead is: map")
    field = node.fields.get(name)
    if field is None:
        raise no_such_field(name, node)
    return field.node, field


def _list_member(node: TypeNode, name: str) -> tuple[TypeNode, Field]:
    inner, field = _member(node, name)
    if inner.element is None or inner.kind is not Kind.LIST:
        raise StrategicError("expected slice or array type, but got: struct")
    return inner.element, field


def _merge_list(node: TypeNode, field: Field, original: list[Any], patch: list[Any], delete_from: bool) -> list[Any]:
    """Upstream: mergeSlice."""
    if not delete_from and field.strategy != "merge":
        return patch
    if not original and not patch:
        return original
    merge_key = field.merge_key
    if element_type(original, patch) is not dict:
        if delete_from:
            unwanted = Positions(patch, "")
            return [value for value in original if value not in unwanted]
        merged = _without_repetitions([*original, *patch])
    else:
        if not merge_key:
            raise StrategicError(f"cannot merge lists without merge key for {node.kind.value}")
        original, patch = _special_items(original, patch, merge_key)
        merged = _merge_items(node, original, patch, merge_key)
    in_patch, server_only = split(merged, patch, merge_key)
    return arranged(in_patch, server_only, patch, original, merge_key)


# upstream: mergeSliceWithSpecialElements
def _special_items(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Deletions done and directives taken out; `$patch: replace` makes the rest the whole list."""
    rest, replace = [], False
    deleted: list[Any] = []
    for item in patch:
        if _DIRECTIVE not in item:
            rest.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                if merge_key not in item:
                    raise no_merge_key(item, merge_key)
                deleted.append(item[merge_key])
            case "replace":
                replace = True
            case "merge":
                raise StrategicError("merging lists cannot yet be specified in the patch")
            case other:
                raise _unknown_directive(other, item)
    if replace:
        return rest, []
    if deleted:
        keys = set(map(_hashable, deleted))
        original = [entry for entry in original if not _has_key(entry, merge_key, keys)]
    return original, rest


def _has_key(entry: Any, merge_key: str, keys: set[Any]) -> bool:
    return isinstance(entry, dict) and merge_key in entry and _hashable(entry[merge_key]) in keys


def _merge_items(node: TypeNode, original: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    merged = list(original)
    places = {
        _hashable(entry[merge_key]): index for index, entry in reversed([*enumerate(merged)]) if merge_key in entry
    }
    for item in patch:
        if merge_key not in item:
            raise no_merge_key(item, merge_key)
        index = places.setdefault(_hashable(item[merge_key]), len(merged))
        if index < len(merged):
            merged[index] = _merge_map(node, merged[index], item)
        else:
            merged.append(item)
    return merged


def _hashable(value: Any) -> Any:
    return msgspec.json.encode(value) if isinstance(value, (dict, list)) else value


def _retain_keys(original: Obj, patch: Obj) -> None:
    """Only the listed members stay; the patch may set no others. Upstream: applyRetainKeysDirective."""
    keys = patch.pop(_RETAIN, _GONE)
    if keys is _GONE:
        return
    if not isinstance(keys, list):
        raise BAD_RETAIN_KEYS
    keys = {key for key in keys if isinstance(key, str)}
    for key, value in patch.items():
        directive = key.startswith((_DELETE_FROM, _ORDER))
        if value is not None and not directive and key not in keys:
            raise BAD_RETAIN_KEYS
    for key in [key for key in original if key not in keys]:
        del original[key]


def _set_orders(node: TypeNode, original: Obj, patch: Obj) -> None:
    """Merge the lists that have a `$setElementOrder`, and arrange them by it. Upstream: mergePatchIntoOriginal."""
    for key in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise StrategicError(f"expected a []interface {{}}, but received a {go_type(order)}")
        name = _after_prefix(key, _ORDER, BAD_SET_ORDER)
        _set_order(node, name, order, original, patch)


def _set_order(node: TypeNode, name: str, order: list[Any], original: Obj, patch: Obj) -> None:
    live, wanted = original.get(name, _GONE), patch.get(name, _GONE)
    for value in (live, wanted):
        if value is not _GONE and not isinstance(value, list):
            raise StrategicError(f"expected a []interface {{}}, but received a {go_type(value)}")
    inner, field = _list_member(node, name)
    merge_key = field.merge_key
    check_order([] if wanted is _GONE else wanted, order, merge_key)
    if live is _GONE and wanted is _GONE:
        return
    before, after = ([] if value is _GONE else value for value in (live, wanted))
    if wanted is _GONE:
        merged = before
    elif live is _GONE:
        merged = _without_directives(wanted)
    else:
        merged = _merge_list(inner, field, before, after, False)
        before = left_behind(before, after, merge_key) if merge_key and field.strategy == "merge" else before
    in_order, server_only = split(merged, order, merge_key)
    element_type(before, after)
    original[name] = arranged(in_order, server_only, order, before, merge_key)
    patch.pop(name, None)


def _after_prefix(key: str, prefix: str, error: StrategicError) -> str:
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        raise error
    return name


def element_type(*lists: list[Any]) -> type | None:
    """The one type of the items of some lists. Upstream: sliceElementType."""
    common: type | None = None
    for value in (value for items in lists for value in items):
        if common is None:
            common = type(value)
            if common is list:
                raise StrategicError("lists of lists are not supported", code=422)
        elif type(value) is not common:
            shown = " ".join(go_value(items) for items in lists)
            raise StrategicError(f"list element types are not identical: [{shown}]")
    if common is None:
        raise StrategicError("no elements in any of the given slices")
    return common


def _without_repetitions(values: list[Any]) -> list[Any]:
    """The last item takes the place of a repetition. Upstream: deduplicateScalars."""
    values = list(values)
    if len(set(values)) == len(values):
        return values
    bounded(values)
    index = 0
    while index < len(values) - 1:
        later = index + 1
        while later < len(values):
            if values[later] == values[index]:
                values[later] = values[-1]
                values.pop()
            else:
                later += 1
        index += 1
    return values


def _without_directives(value: Any) -> Any:
    """A new part without its directives; _GONE if it is one. Upstream: removeDirectives."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _GONE
        kept = ((key, _without_directives(member)) for key, member in value.items())
        return {key: member for key, member in kept if member is not _GONE}
    if isinstance(value, list):
        return [kept for kept in map(_without_directives, value) if kept is not _GONE]
    return value
