"""The three kinds of patch: how each is read, what it does to an object, and what an error shows of it.

Upstream: jsonPatcher and smpPatcher (apiserver/pkg/endpoints/handlers/patch.go).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from konverge.apiserver import field_errors, nesting, status
from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.go.json import TYPE_OF_HEAD, cannot_unmarshal
from konverge.apiserver.merge import json_patch, strategic
from konverge.apiserver.merge.strategic_errors import StrategicError
from konverge.apiserver.schema import decode as schema
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj


class Patch(Protocol):
    """A patch that has been read. `strict` lists unknown and duplicate members of the patch itself."""

    strict: list[str]

    def apply(self, live: Obj) -> Obj:
        """The patched object; the one given stays as it is."""

    def shown(self, live: Obj, patched: Obj, node: TypeNode | None) -> str:
        """What an error about the result shows; `node` is None for a custom resource."""


def parsed(body: bytes) -> Any:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise status.bad_request("invalid JSON patch") from None
    if nesting.is_too_deep(value, body):
        raise status.bad_request(f"invalid JSON patch: {nesting.TOO_DEEP}")
    return value


def _wrong(value: Any, wanted: str) -> str:
    return cannot_unmarshal(value, f"value of type {wanted}")


class JsonPatch:
    """RFC 6902."""

    _MEMBERS = frozenset({"op", "path", "from", "value"})

    def __init__(self, body: bytes, checked: bool) -> None:
        operations = [] if (value := parsed(body)) is None else value
        if not isinstance(operations, list):
            raise status.bad_request("error decoding patch: " + _wrong(operations, "[]handlers.jsonPatchOp"))
        self._check(operations)
        if len(operations) > json_patch.MOST_OPERATIONS:
            limit, given = json_patch.MOST_OPERATIONS, len(operations)
            message = f"The allowed maximum operations in a JSON patch is {limit}, got {given}"
            raise status.ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
        self._operations = operations
        self.strict = self._unknown_members(body, operations) if checked else []

    def _check(self, operations: list[Any]) -> None:
        for operation in operations:
            if not isinstance(operation, dict):
                raise status.bad_request("error decoding patch: " + _wrong(operation, "handlers.jsonPatchOp"))
            for name in ("op", "path", "from"):
                value = operation.get(name)
                if value is not None and not isinstance(value, str):
                    wrong = cannot_unmarshal(value, f"struct field jsonPatchOp.{name} of type string")
                    raise status.bad_request(f"error decoding patch: {wrong}")

    def _unknown_members(self, body: bytes, operations: list[Any]) -> list[str]:
        problems = [f"json patch {text}" for text in schema.duplicates(body)]
        for index, operation in enumerate(operations):
            unknown = [name for name in operation if name not in self._MEMBERS]
            problems += [f'json patch unknown field "[{index}].{name}"' for name in unknown]
        return problems

    def apply(self, live: Obj) -> Obj:
        try:
            patched = json_patch.apply(live, self._operations)
        except json_patch.PatchFailed:
            raise rejected() from None
        if not isinstance(patched, dict):
            message = f"couldn't get version/kind; json parse error: {_wrong(patched, TYPE_OF_HEAD)}"
            raise unreadable(msgspec.json.encode(patched).decode(), message)
        return patched

    def shown(self, live: Obj, patched: Obj, node: TypeNode | None) -> str:
        return json_patch.patched_text(node, patched, json_patch.opened_by_operations(self._operations))


class MergePatch:
    """RFC 7396."""

    def __init__(self, body: bytes, checked: bool) -> None:
        patch = parsed(body)
        if patch is None:
            raise status.bad_request("Invalid JSON Patch")
        if not isinstance(patch, dict):
            raise status.bad_request("error decoding patch: " + _wrong(patch, "map[string]interface {}"))
        self._patch = patch
        self.strict = schema.duplicates(body) if checked else []

    def apply(self, live: Obj) -> Obj:
        patched: Obj = json_patch.apply_merge(live, self._patch)
        return patched

    def shown(self, live: Obj, patched: Obj, node: TypeNode | None) -> str:
        return json_patch.patched_text(node, patched, json_patch.opened_by_merge(live, self._patch))


class StrategicPatch:
    """Strategic merge by the type of the kind."""

    def __init__(self, body: bytes, node: TypeNode, checked: bool) -> None:
        patch = parsed(body)
        if patch is None:
            patch = {}
        if not isinstance(patch, dict):
            raise status.bad_request(_wrong(patch, "map[string]interface {}"))
        self._patch, self._node = patch, node
        self.strict = schema.duplicates(body) if checked else []

    def apply(self, live: Obj) -> Obj:
        try:
            return strategic.apply(self._node, live, self._patch)
        except StrategicError as error:
            if error.code == 422:
                raise rejected() from None
            raise (status.bad_request(str(error)) if error.code == 400 else status.plain_500(str(error))) from None

    def shown(self, live: Obj, patched: Obj, node: TypeNode | None) -> str:
        return go_value(self._patch)


def unreadable(shown: str, why: str) -> status.ApiError:
    """422: the patch can be applied, but the result cannot be read as the kind."""
    return status.invalid("", "", "", [field_errors.invalid("patch", shown, why)])


def rejected() -> status.ApiError:
    """What the real server says about a patch that cannot be applied: no more than this."""
    return status.ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})
