"""PATCH: JSON patch, merge patch, strategic merge patch, and apply.

A patch is applied to the object in the version of the path, and the result is written like an update. When another
request has written in between, the patch is applied again to the object as it is then.

Upstream: PatchResource (apiserver/pkg/endpoints/handlers/patch.go).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.apiserver import status
from konverge.apiserver.http import bodies, managed_fields, reads, respond, scheme, writes
from konverge.apiserver.http.options import WriteOptions, write_options
from konverge.apiserver.http.patchers import JsonPatch, MergePatch, Patch, StrategicPatch, unreadable
from konverge.apiserver.http.whole_objects import keep_all_but_status, rules_of
from konverge.apiserver.merge import apply as applying
from konverge.apiserver.meta import system
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema.decode import Decoded, DecodeError, from_patched
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
    return await _change(call, served, read(served, media, body, options), options)


def receive(call: Call, served: Served) -> tuple[str, bytes, WriteOptions]:
    """The media type of a patch, its bytes, and the options of the write."""
    media = bodies.media_type(call)
    _check_media(served, media)
    respond.settle_form(call, custom=served.custom)
    body = bodies.checked_body(call)
    return media, body, write_options(call.query, "PatchOptions", apply=media == APPLY_PATCH)


def _check_media(served: Served, media: str) -> None:
    supported = _CUSTOM if served.custom else _BUILTIN
    if media in supported:
        return
    if served.custom:
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
    return reads.answer(call, 200, served, written.record)


def decoded(call: Call, served: Served, sent: Patch, live: Obj, options: WriteOptions) -> Obj:
    """The patched object as its type has it; fields that the type does not have give warnings or a refusal."""
    patched = sent.apply(live)
    if not patched.get("kind") and not patched.get("apiVersion"):
        patched = {}  # without kind and version the real server's decoder leaves the object empty
    try:
        if not isinstance(sent, StrategicPatch):  # which knows the type, and overwrites kind and version
            scheme.same_kind(call, served, patched)
        result = _typed(served, sent, patched)
    except (DecodeError, scheme.WrongKind) as error:
        raise _unreadable(served, sent, live, patched, str(error)) from None
    unknown = [*sent.strict, *result.strict]
    if unknown and options.field_validation == "Strict":
        raise _unreadable(served, sent, live, patched, "strict decoding error: " + ", ".join(unknown))
    if options.field_validation == "Warn":
        for text in unknown:
            call.warn(text)
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


async def _apply(call: Call, served: Served, body: bytes, options: WriteOptions) -> Response:
    applied = applying.read(body)
    owner = managed_fields.owner_of(call, served, options)
    if owner is None:
        raise status.unsupported_media_type("415: Unsupported Media Type", details={})

    def change(live: Obj | None) -> Obj:
        obj = applying.apply(live, applied.obj, owner, force=bool(options.force))
        for text in applying.warnings(applied, options.field_validation):
            call.warn(text)
        uid = obj["metadata"].get("uid")
        if live is None and uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(served.resource.group, served.resource.plural, call.info.name, why)
        check_identity(call, served, obj, live)
        served.defaults(obj)
        return obj

    written = await writes.update(call, served, change, options, rules=rules_of(call), creates=not call.subresource)
    return reads.answer(call, 201 if written.created else 200, served, written.record)
