"""A PATCH request other than an apply: from the body to the object to store, or to the right error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge.apiserver import fielderrors, status
from konverge.apiserver.merge import gobytes, jsonpatch, mergepatch, strategic
from konverge.apiserver.merge.gotext import go_value
from konverge.apiserver.merge.strategicerrors import StrategicError
from konverge.apiserver.schema import decode as decoding
from konverge.apiserver.schema.decode import Decoded, DecodeError
from konverge.apiserver.schema.exact import Exact, json_type, parse
from konverge.apiserver.schema.node import Field, Kind, TypeNode
from konverge.apiserver.status import ApiError
from konverge.apiserver.strategy import Obj

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

Decode = Callable[[Obj], Decoded]
_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def patched(
    media_type: str, live: Obj, body: bytes, *, node: TypeNode, validation: str = "Warn", decode: Decode | None = None
) -> Decoded:
    """The patched object, decoded, with the warnings to give; `live` has kind and apiVersion, as a GET shows it.

    `decode` turns the result into an object of the kind and raises DecodeError; it is where a custom resource is pruned
    and where a change of kind is refused. `validation` is the request's fieldValidation.
    """
    into = decode or (lambda obj: decoding.from_obj(node, obj))
    try:
        patch = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise status.bad_request("invalid JSON patch") from None
    if media_type == JSON_PATCH:
        return _json_patched(live, body, patch, node, validation, into)
    if media_type == MERGE_PATCH:
        return _merge_patched(live, body, patch, node, validation, into)
    return _strategic_patched(live, body, patch, node, validation)


def _json_patched(live: Obj, body: bytes, patch: Any, node: TypeNode, validation: str, decode: Decode) -> Decoded:
    strict = _patch_mistakes(body, patch) if validation != "Ignore" else []
    if not isinstance(patch, list):
        if patch is not None:
            what = json_type(patch)
            raise status.bad_request(f"json: cannot unmarshal {what} into Go value of type jsonpatch.Patch")
        patch = []
    if len(patch) > jsonpatch.MOST_OPERATIONS:
        most = f"The allowed maximum operations in a JSON patch is {jsonpatch.MOST_OPERATIONS}, got {len(patch)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {most}")
    try:
        result = jsonpatch.apply(live, patch)
    except jsonpatch.PatchFailed:
        raise _rejected() from None
    shown = _Shown(node, result, gobytes.opened_by_operations(patch))
    return _decoded(result, [f"json patch {text}" for text in strict], validation, decode, shown)


def _merge_patched(live: Obj, body: bytes, patch: Any, node: TypeNode, validation: str, decode: Decode) -> Decoded:
    strict: list[str] = []
    if validation != "Ignore":
        if patch is not None and not isinstance(patch, dict):
            raise status.bad_request("error decoding patch: " + _not_a_map(patch))
        strict = decoding.duplicates(body)
    if patch is None:
        raise status.bad_request("Invalid JSON Patch")
    result = mergepatch.apply(live, patch)
    shown = _Shown(node, result, gobytes.opened_by_merge(live, patch) if isinstance(patch, dict) else {})
    return _decoded(result, strict, validation, decode, shown)


def _strategic_patched(live: Obj, body: bytes, patch: Any, node: TypeNode, validation: str) -> Decoded:
    if patch is not None and not isinstance(patch, dict):
        raise status.bad_request(_not_a_map(patch))
    strict = decoding.duplicates(body) if validation != "Ignore" else []
    patch = patch or {}
    try:
        result = strategic.apply(node, live, patch)
    except StrategicError as error:
        raise _interpreted(error) from None
    return _decoded(result, strict, validation, lambda obj: decoding.from_patched(node, obj), lambda: go_value(patch))


class _Shown:
    """The text of the patched object, made only when a message needs it."""

    def __init__(self, node: TypeNode, result: Any, opened: gobytes.Opened) -> None:
        self._parts = node, result, opened

    def __call__(self) -> str:
        return gobytes.text(*self._parts)


def _decoded(result: Any, strict: list[str], validation: str, decode: Decode, shown: Callable[[], str]) -> Decoded:
    try:
        if not isinstance(result, dict):
            what = f"json: cannot unmarshal {json_type(result)} into Go value of type {_HEAD}"
            raise DecodeError(f"couldn't get version/kind; json parse error: {what}")
        found = decode(result)
    except DecodeError as error:
        raise _invalid(shown(), str(error)) from None
    if validation == "Ignore":
        return Decoded(found.obj, ())
    mistakes = [*strict, *found.strict]
    if mistakes and validation == "Strict":
        raise _invalid(shown(), "strict decoding error: " + ", ".join(mistakes))
    return Decoded(found.obj, mistakes)


def _invalid(shown: str, why: str) -> ApiError:
    return status.invalid("", "", "", [fielderrors.invalid("patch", shown, why)])


def _rejected() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def _interpreted(error: StrategicError) -> ApiError:
    if error.code == 400:
        return status.bad_request(str(error))
    return _rejected() if error.code == 422 else status.plain_500(str(error))


def _not_a_map(patch: Any) -> str:
    return f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"


def _patch_mistakes(body: bytes, patch: Any) -> list[str]:
    """Undeclared and repeated members of the operations. Raises 400 for what is no list of operations."""
    reading = Exact()
    try:
        reading.decode(_OPERATIONS, parse(body))
    except DecodeError as error:
        raise status.bad_request(f"error decoding patch: {error}") from None
    return reading.strict


def _operations() -> TypeNode:
    text = TypeNode(Kind.SCALAR, scalar="string", go="string")
    anything = TypeNode(Kind.ANY, scalar="interface", go="interface {}")
    fields = {name: Field(name, text) for name in ("op", "path", "from")} | {"value": Field("value", anything)}
    operation = TypeNode(Kind.STRUCT, go="handlers.jsonPatchOp", fields=fields)
    return TypeNode(Kind.LIST, go="[]handlers.jsonPatchOp", element=operation)


_OPERATIONS = _operations()
