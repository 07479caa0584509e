"""PATCH: JSON patch, merge patch, strategic merge patch, and apply.

A patch is applied to the object in the version of the path, and the result is written like an update. When another
request has written in between, the patch is applied again to the object as it is then.

Upstream: PatchResource (apiserver/pkg/endpoints/handlers/patch.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from konverge.apiserver import aside, field_errors, nesting, status
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.go.json import TYPE_OF_HEAD, cannot_unmarshal
from konverge.apiserver.http import bodies, managed_fields, reads, respond, writes
from konverge.apiserver.http.options import WriteOptions, write_options
from konverge.apiserver.http.whole_objects import keep_all_but_status, rules_of
from konverge.apiserver.merge import apply as applying
from konverge.apiserver.merge import json_patch, strategic
from konverge.apiserver.merge.strategic_errors import StrategicError
from konverge.apiserver.meta import system
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema import decode as schema
from konverge.apiserver.schema.decode import Decoded, DecodeError, from_patched
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
ChangeObject = Callable[[Obj], Obj]
_CUSTOM = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_BUILTIN = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


async def patch(call: Call) -> Response:
    served = call.resource
    media, body, options = receive(call, served)
    if media == APPLY_PATCH:
        return await _apply(call, served, body, options)
    try:
        sent = await aside.run(len(body), read, served, media, body, options)
    except status.ApiError:
        if await aside.run(
            len(body), bodies.is_json, body
        ):  # of the wrong type, which is noticed by the object's patch
            reads.find(call)
        raise
    return await _change(call, served, sent, options)


def receive(call: Call, served: Served) -> tuple[str, bytes, WriteOptions]:
    """The media type of a patch, its bytes, and the options of the write."""
    media = _checked_media(served, call.request.headers.get("content-type"))
    respond.settle_form(call, custom=served.custom)
    body = bodies.checked_body(call)
    return media, body, write_options(call.query, "PatchOptions", apply=media == APPLY_PATCH)


def _checked_media(served: Served, header: str) -> str:
    """415 for what is no patch. What routes requests of built-in kinds looks for any type that it knows; the handler
    wants the one, written as it is."""
    supported, media = _CUSTOM if served.custom else _BUILTIN, header.partition(";")[0]
    if media in supported:
        return media
    routed = any(part.strip() in supported for part in header.replace(";", ",").split(","))
    if served.custom or routed:
        raise status.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
        )
    raise status.unsupported_media_type("415: Unsupported Media Type", details={})


def read(served: Served, media: str, body: bytes, options: WriteOptions) -> Patch:
    checked = options.field_validation != "Ignore"
    if media == JSON_PATCH:
        return JsonPatch(body, checked)
    if media == MERGE_PATCH:
        return MergePatch(body, checked)
    assert served.typing is not None
    return StrategicPatch(body, served.typing, checked)


async def _change(call: Call, served: Served, sent: Patch, options: WriteOptions) -> Response:
    def change(live: Obj | None) -> Obj:
        if live is None:
            raise status.not_found(served.resource.group, served.resource.plural, call.info.name)
        obj = decoded(call, served, sent, live, options)
        served.defaults(obj)
        check_identity(call, served, obj, live)
        managed_fields.track(call, served, live, obj, options)
        return obj

    written = await writes.update(call, served, change, options, rules=rules_of(call))
    return await reads.answer(call, 200, served, written.record)


def decoded(call: Call, served: Served, sent: Patch, live: Obj, options: WriteOptions) -> Obj:
    """The patched object as its type has it; fields that the type does not have give warnings or a refusal."""
    patched = sent.apply(live)
    if not patched.get("kind") and not patched.get("apiVersion"):
        patched = {}  # without kind and version the real server's decoder leaves the object empty
    try:
        if not isinstance(sent, StrategicPatch):  # which knows the type, and overwrites kind and version
            bodies.same_kind(call, served, patched)
        result = _typed(served, sent, patched)
    except (DecodeError, bodies.WrongKind) as error:
        raise _unreadable(served, sent, live, patched, str(error)) from None
    unknown = [*sent.strict, *result.strict]
    if unknown and options.field_validation == "Strict":
        raise _unreadable(served, sent, live, patched, "strict decoding error: " + ", ".join(unknown))
    if options.field_validation == "Warn":
        call.warn_all(unknown)
    obj = result.obj
    obj["kind"], obj["apiVersion"] = served.resource.kind, served.resource.api_version
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    if bodies.wants_reset(patched):
        obj["metadata"]["managedFields"] = [{}]
    return obj


def _typed(served: Served, sent: Patch, patched: Obj) -> Decoded:
    if isinstance(sent, StrategicPatch):
        assert served.typing is not None
        return from_patched(served.typing, patched)
    return bodies.by_type(served, msgspec.json.encode(patched), patched)


def _unreadable(served: Served, sent: Patch, live: Obj, patched: Obj, why: str) -> status.ApiError:
    return unreadable(sent.shown(live, patched, None if served.custom else served.typing), why)


def check_identity(call: Call, served: Served, obj: Obj, live: Obj | None) -> None:
    """A patch may not rename or move the object; through /status it changes the status alone."""
    metadata = obj["metadata"]
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    system.match_name(metadata, call.info.name)
    if live is not None and call.subresource == "status":
        keep_all_but_status(obj, live)


class Configuration:
    """What is applied. The object that comes of it shares parts with it, and defaults and admission change them: when
    another write came between, the apply begins again with the body as it was sent."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._unused: Decoded | None = applying.read(body)

    def as_sent(self) -> Decoded:
        unused, self._unused = self._unused, None
        return applying.read(self._body) if unused is None else unused


async def _apply(call: Call, served: Served, body: bytes, options: WriteOptions) -> Response:
    configuration = await aside.run(len(body), Configuration, body)
    owner = managed_fields.owner_of(call, served, options)
    if owner is None:
        raise status.unsupported_media_type("415: Unsupported Media Type", details={})

    def change(live: Obj | None) -> Obj:
        applied = configuration.as_sent()
        obj = applying.apply(live, applied.obj, owner, force=bool(options.force))
        call.warn_all(applying.warnings(applied, options.field_validation))
        uid = obj["metadata"].get("uid")
        if live is None and uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(served.resource.group, served.resource.plural, call.info.name, why)
        check_identity(call, served, obj, live)
        served.defaults(obj)
        return obj

    written = await writes.update(call, served, change, options, rules=rules_of(call), creates=not call.subresource)
    return await reads.answer(call, 201 if written.created else 200, served, written.record)


# --- the three kinds of patch: how each is read, what it does to an object, and what an error shows of it
# Upstream: jsonPatcher and smpPatcher.


class Patch(Protocol):
    """A patch that has been read. `strict` lists unknown and duplicate members of the patch itself."""

    strict: list[str]

    def apply(self, live: Obj) -> Obj:
        """The patched object; the one given stays as it is."""

    def shown(self, live: Obj, patched: Obj, node: TypeNode | None) -> str:
        """What an error about the result shows; `node` is None for a custom resource."""


def parsed(body: bytes) -> Any:
    try:
        value = json_pieces.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise status.bad_request("invalid JSON patch") from None
    if nesting.is_too_deep(body):
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
