"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396) as evanphx/json-patch applies them.

The first is laxer than the RFC in places that clients have come to rely on: `replace` of an absent member adds it,
`test` of an absent member against null holds, `copy` of an absent member copies null, indices may be negative.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.apiserver.go.json import encode
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.schema.node import Kind, TypeNode
from konverge.apiserver.strategy import Obj

MOST_OPERATIONS = 10_000  # upstream: maxJSONPatchOperations (apiserver endpoints/handlers/patch.go)
MOST_COPIED = 3 * 1024 * 1024
"""Bytes that copies may add. Upstream: AccumulatedCopySizeLimit, which the API server sets to the limit of a body."""
_MISSING = object()


class PatchFailed(Exception):
    """An operation that cannot be done; the patch has no effect."""

    operation: Any = None
    """That operation, where a whole patch was applied."""


def apply(document: Obj, operations: list[Any]) -> Any:
    """The patched document; the one given is not changed."""
    root: Any = copy_json(document)
    room = MOST_COPIED
    for operation in operations:
        known = operation if isinstance(operation, dict) else {}
        try:
            if known.get("op") == "copy":
                room -= _size(root, known)
                if room < 0:
                    raise PatchFailed(f"the copies of a patch may not have more than {MOST_COPIED} bytes together")
            root = _perform(root, known)
        except PatchFailed as error:
            error.operation = operation
            raise
    return root


def apply_in_admission(document: Obj, operations: list[Any]) -> Any:
    """The patch of a webhook or a policy: the same operations, refused with the library's whole error text."""
    try:
        return apply(document, operations)
    except PatchFailed as error:
        whole = PatchFailed(_whole_error(error.operation, str(error)))
        whole.operation = error.operation
        raise whole from None


def _whole_error(operation: Any, problem: str) -> str:
    kind, path = (operation.get("op"), str(operation.get("path"))) if isinstance(operation, dict) else ("", "")
    if problem.startswith("doc is missing path"):
        shown = path if kind == "replace" else quote(path)
        return f"{kind} operation does not apply: doc is missing path: {shown}: missing value"
    if problem.startswith("Unable to remove nonexistent key: "):
        where = problem.rpartition(": ")[2] if kind == "move" else path
        return f"error in {kind} for path: '{where}': {problem}: missing value"
    if problem.startswith("Unable to access invalid index"):
        return f"error in {kind} for path: '{path}': {problem}: invalid index referenced"
    if problem.startswith("value was not a proper array index: "):
        head, _, index = problem.rpartition(": ")
        detail = f"{head}: '{index}': strconv.Atoi: parsing {quote(index)}: invalid syntax"
        return f"error in {kind} for path: '{path}': {detail}"
    return f"{problem}: test failed" if problem.startswith("testing value") else problem


def _size(root: Any, operation: dict[str, Any]) -> int:
    """The bytes that a copy adds: copies of copies double each time."""
    value = _get(*_find(root, _text(operation, "from")))
    return 0 if value is _MISSING else len(msgspec.json.encode(value))


def _perform(root: Any, operation: dict[str, Any]) -> Any:
    match operation.get("op"):
        case "add":
            _add(root, _text(operation, "path"), copy_json(operation.get("value")))
        case "remove":
            _remove(root, _text(operation, "path"))
        case "replace":
            return _replace(root, _text(operation, "path"), operation)
        case "move":
            value = _remove(root, _text(operation, "from"))
            _add(root, _text(operation, "path"), value)
        case "copy":
            value = _get(*_find(root, _text(operation, "from")))
            _add(root, _text(operation, "path"), None if value is _MISSING else copy_json(value))
        case "test":
            _test(root, _text(operation, "path"), operation.get("value"))
        case other:
            raise PatchFailed(f"Unexpected kind: {other}")
    return root


def _text(operation: dict[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        raise PatchFailed(f"operation missing {name} field")
    return value


def _find(root: Any, path: str) -> tuple[Any, str]:
    """The container that a path leads to, and the last part of the path."""
    parts = path.split("/")
    if len(parts) < 2:
        raise PatchFailed(f"doc is missing path: {path}")
    here = root
    for part in parts[1:-1]:
        here = _get(here, _unescape(part))
        if here is _MISSING or not isinstance(here, (dict, list)):
            raise PatchFailed(f"doc is missing path: {path}")
    return here, _unescape(parts[-1])


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _index(key: str, size: int) -> int:
    try:
        index = int(key)
    except ValueError:
        raise PatchFailed(f"value was not a proper array index: {key}") from None
    if not key.lstrip("+-").isdigit() or not -size <= index < size:
        raise PatchFailed(f"Unable to access invalid index: {key}")
    return index + size if index < 0 else index


def _get(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container[_index(key, len(container))]
    return container.get(key, _MISSING)


def _add(root: Any, path: str, value: Any) -> None:
    container, key = _find(root, path)
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _remove(root: Any, path: str) -> Any:
    container, key = _find(root, path)
    if isinstance(container, list):
        return container.pop(_index(key, len(container)))
    if key not in container:
        raise PatchFailed(f"Unable to remove nonexistent key: {key}")
    return container.pop(key)


def _replace(root: Any, path: str, operation: dict[str, Any]) -> Any:
    value = copy_json(operation.get("value"))
    if path == "":
        if not isinstance(value, (dict, list)):
            raise PatchFailed("replace operation value must be object or array")
        return value
    container, key = _find(root, path)
    if isinstance(container, list):
        container[_index(key, len(container))] = value
    else:
        container[key] = value
    return root


def _test(root: Any, path: str, wanted: Any) -> None:
    value = root if path == "" else _get(*_find(root, path))
    if not same(None if value is _MISSING else value, wanted):
        raise PatchFailed(f"testing value {path} failed")


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: unlike Python's, 1, 1.0 and true are three values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def copy_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copy_json(member) for key, member in value.items()}
    return [copy_json(member) for member in value] if isinstance(value, list) else value


# --- merge patch (merge.go)


def apply_merge(document: Any, patch: Any) -> Any:
    """The document with a merge patch applied; parts of both are shared, neither is changed."""
    if not isinstance(document, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    out = dict(document)
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        elif out.get(name) is None:
            out[name] = without_nulls(value)
        else:
            out[name] = apply_merge(out[name], value)
    return out


def without_nulls(value: Any) -> Any:
    """A new part has no nulls in its objects; in its lists they stay."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


# --- texts of patched objects

Opened = dict[str, Any]
"""The members that a patch went into, nested."""


def patched_text(node: TypeNode | None, value: Any, opened: Opened | None) -> str:
    """The JSON text of a patched object, for the one message that quotes it.

    The API server patches the text of the object: the parts that the patch opened are maps whose members are sorted,
    the others are still as the server wrote them, in the order of the Go structs. `node` None: no struct. `opened`
    None: the patch did not open this part.
    """
    if isinstance(value, dict):
        members = ",".join(
            f"{encode(name)}:{patched_text(_member(node, name), value[name], _below(opened, name))}"
            for name in _order(node, value, opened)
        )
        return "{" + members + "}"
    if isinstance(value, list):
        element = node.element if node is not None and node.kind is Kind.LIST else None
        parts = (patched_text(element, item, _below(opened, str(index))) for index, item in enumerate(value))
        return "[" + ",".join(parts) + "]"
    return encode(value)


def _order(node: TypeNode | None, value: dict[str, Any], opened: Opened | None) -> list[str]:
    if opened is None and node is not None and node.kind is Kind.STRUCT and node.go:
        known = [name for name in node.fields if name in value]
        return known + sorted(name for name in value if name not in node.fields)
    return sorted(value)


def _member(node: TypeNode | None, name: str) -> TypeNode | None:
    return node.child(name) if node is not None and node.kind is not Kind.LIST and node.go else None


def _below(opened: Opened | None, name: str) -> Opened | None:
    return None if opened is None else opened.get(name)


def opened_by_operations(operations: list[Any]) -> Opened:
    """What a JSON patch goes through: the containers on the way to its targets."""
    opened: Opened = {}
    for operation in operations:
        for pointer in (operation.get("path"), operation.get("from")):
            here = opened
            for part in str(pointer or "").split("/")[1:-1]:
                here = here.setdefault(_unescape(part), {})
    return opened


def opened_by_merge(live: Any, patch: Any) -> Opened:
    """What a merge patch goes into: objects on both sides. What is new, lists too, is gone through for its nulls."""
    opened: Opened = {}
    members = patch.items() if isinstance(patch, dict) else ((str(index), item) for index, item in enumerate(patch))
    for name, value in members:
        if isinstance(value, (dict, list)):
            before = live.get(name) if isinstance(live, dict) else None
            opened[name] = opened_by_merge(before, value)
    return opened
