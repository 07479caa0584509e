"""DELETE of one object or of a collection: preconditions, finalizers, grace periods, and the answer.

Upstream: apiserver/pkg/endpoints/handlers/delete.go, Store.Delete (apiserver/pkg/registry/generic/registry/store.go).
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from konverge import clock
from konverge.apiserver import aside, field_errors, status
from konverge.apiserver.go import json
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies, listing, negotiate, reads, render, respond, stored_size, writes
from konverge.apiserver.http.listing import selected
from konverge.apiserver.http.options import UNSAFE, DeleteOptions, delete_options, list_options
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema import lookup
from konverge.apiserver.schema.decode import DecodeError, from_json
from konverge.apiserver.storage import Mismatch, Missing, Record, Release
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.storage.records import Draft, draft_of
from konverge.apiserver.strategy import Obj
from konverge.objects.durations import seconds
from konverge.objects.resource import Resource
from konverge.wire.message import Response

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_OPTIONS = Resource("", "v1", "DeleteOptions", "")


class Deleted(NamedTuple):
    """`record` is the last state, or the present one where the object stays for now."""

    record: Record
    gone: bool


def read_options(call: Call) -> DeleteOptions:
    """The options of a delete: from the body if there is one, else from the query."""
    body = bodies.checked_body(call)
    if not body:
        return delete_options(call.query, None)
    media = bodies.media_type(call)
    if media != "application/json":
        if media not in ("application/yaml", "application/vnd.kubernetes.protobuf"):
            return delete_options(call.query, None)
        try:
            body = bodies.to_json(call, media, body, _OPTIONS)
        except bodies.UnreadableError as error:
            raise status.bad_request(str(error)) from None
    obj, problem = json.parse(body)
    if problem:
        raise status.bad_request(f"couldn't get version/kind; json parse error: {problem}")
    kind = obj.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = obj.get("apiVersion") or call.resource.resource.api_version
        raise status.bad_request(
            f"no kind {quote(kind)} is registered for version {quote(version)} in scheme {quote(bodies.SCHEME)}"
        )
    node = lookup("meta.k8s.io", "v1", "DeleteOptions")
    assert node is not None
    try:
        return delete_options(call.query, from_json(node, body, obj).obj)
    except DecodeError as error:
        raise status.bad_request(str(error)) from None


async def delete(call: Call) -> Response:
    served = call.resource
    respond.settle_form(call, custom=served.custom)
    options = await aside.run(len(call.request.body), read_options, call)
    record = reads.find_for_write(call)
    if options.unsafe:
        raise _readable(call, served)
    if served.strategy.orphan_warning and options.orphan is None and options.propagation is None:
        call.warn(served.strategy.orphan_warning)
    result = await remove(call, served, record.key, options)
    if result.gone and not served.strategy.returns_deleted:
        return respond.answer(call, 200, success(served, result.record))
    code = 202 if options.orphan is False and not result.gone else 200
    return await reads.answer(call, code, served, result.record)


def _readable(call: Call, served: Served) -> status.ApiError:  # upstream: corruptObjectDeleter.Delete
    """What is stored here can always be read: nothing is ever deleted unsafely."""
    why = "unsafe deletion is not allowed because the object is decodable from storage"
    return status.conflict(
        served.resource.group,
        served.resource.plural,
        call.info.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{stored_size.place(served)}/{call.key}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )


def success(served: Served, record: Record) -> Obj:
    """The Status of a delete that is done."""
    resource = served.resource
    details: Obj = {"name": record.name}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    details["uid"] = record.decode()["metadata"].get("uid", "")
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def remove(call: Call, served: Served, key: str, options: DeleteOptions, *, admitted: bool = False) -> Deleted:
    """Delete an object as far as it can be deleted now. `admitted`: admission has already accepted the deletion."""
    call.operation, call.dry_run = "DELETE", options.dry_run
    while True:
        record = call.server.store.get(served.table, key)
        if record is None:
            raise status.not_found(served.resource.group, served.resource.plural, key.rpartition("/")[2])
        try:
            if not admitted:
                await _admit(call, served, record, options)
            return await _remove_once(call, served, record, options)
        except (Mismatch, Missing):
            continue


async def _admit(call: Call, served: Served, record: Record, options: DeleteOptions) -> None:
    """Admission sees each object of a collection, but no name: the request has none."""
    live = await aside.run(len(record.data), render.restored, served, record)
    check_preconditions(served, record, live, options)
    name = "" if call.info.verb == "deletecollection" else record.name
    request = writes.admission_request(call, served, None, live, options.body(), name, len(record.data))
    request.namespace = record.namespace
    await call.server.admission.admit(request)
    await call.server.admission.validate(request)


# upstream: updateForGracefulDeletionAndFinalizers
async def _remove_once(call: Call, served: Served, record: Record, options: DeleteOptions) -> Deleted:
    obj = await aside.run(len(record.data), record.decode)
    call.server.store.require(call.reverts)
    check_preconditions(served, record, obj, options)
    if options.grace_period is not None and options.grace_period < 0:
        options = replace(options, grace_period=1)
    grace = _grace(served, obj, options)
    if grace is None:
        return await _unchanged(call, record)
    metadata = obj["metadata"]
    before = {"finalizers": metadata.get("finalizers") or []}
    metadata["finalizers"] = _finalizers(served, before["finalizers"], options)
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    graceful = served.strategy.grace_period is not None and _is_first_or_shorter(obj)
    if grace == 0 and not metadata.get("finalizers") and not writes.is_held(served, obj):
        if graceful:
            return await _mark_and_remove(call, served, record, obj)
        return await _remove_record(call, served, record, obj, writes.dropped_finalizers(before, metadata))
    _mark(obj, grace, graceful=graceful)
    if served.strategy.on_marked is not None:
        served.strategy.on_marked(obj, call)
    return await _store_marked(call, served, record, obj)


def check_preconditions(served: Served, record: Record, obj: Obj, options: DeleteOptions) -> None:
    resource, group = served.resource, served.reported_group
    uid, version = obj["metadata"].get("uid", ""), str(record.revision)
    if served.table == "/namespaces":
        _check_namespace(record.name, uid, version, options)
    if options.uid is not None and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(group, resource.kind, record.name, why)
    if options.resource_version is not None and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({version}). The object might have been modified"
        )
        raise status.conflict(group, resource.kind, record.name, why)


def _check_namespace(name: str, uid: str, version: str, options: DeleteOptions) -> None:
    """Namespaces have a text of their own. Upstream: REST.Delete (pkg/registry/core/namespace/storage)."""
    for what, asked, present in (("UID", options.uid, uid), ("ResourceVersion", options.resource_version, version)):
        if asked is not None and asked != present:
            why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {present}"
            raise status.conflict("", "namespaces", name, why)


def _grace(served: Served, obj: Obj, options: DeleteOptions) -> int | None:  # upstream: rest.BeforeDelete
    """The seconds that the object still has; None when its deletion is under way and stays as it is."""
    strategy, metadata = served.strategy, obj["metadata"]
    if strategy.grace_period is None:
        return 0
    if not metadata.get("deletionTimestamp"):
        return strategy.grace_period(obj, options.grace_period)
    present = metadata.get("deletionGracePeriodSeconds") or 0
    if present == 0:
        return 0
    if options.grace_period is None or options.grace_period >= present:
        return None
    return options.grace_period


def _is_first_or_shorter(obj: Obj) -> bool:
    """Whether a graceful kind records its period: for the first deletion, and when the period gets shorter."""
    return not obj["metadata"].get("deletionTimestamp") or bool(obj["metadata"].get("deletionGracePeriodSeconds"))


# upstream: deletionFinalizersForGarbageCollection
def _finalizers(served: Served, present: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers after the propagation policy has added or removed its own."""
    default = served.strategy.default_propagation
    orphan = foreground = False
    if default == "Unsupported":
        pass
    elif options.orphan is not None:
        orphan = options.orphan
    elif options.propagation is not None:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    elif "orphan" in present or "foregroundDeletion" in present:
        orphan, foreground = "orphan" in present, "foregroundDeletion" in present
    else:
        orphan = default == "Orphan"
    if {"orphan", "foregroundDeletion"} & set(present) == {
        name for name, wanted in (("orphan", orphan), ("foregroundDeletion", foreground)) if wanted
    }:
        return present
    kept = [name for name in present if name not in ("orphan", "foregroundDeletion")]
    return kept + ["orphan"] * orphan + ["foregroundDeletion"] * foreground


def _mark(obj: Obj, grace: int, *, graceful: bool) -> None:  # upstream: rest.BeforeDelete, markAsDeleting
    """Record that the object is being deleted, and when it will be gone."""
    metadata = obj["metadata"]
    now = datetime.fromtimestamp(int(clock.now()), UTC)
    before = metadata.get("deletionTimestamp")
    if not before and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if graceful and before:
        then = datetime.strptime(before, _FORMAT).replace(tzinfo=UTC)
        moved = then + seconds(-(metadata.get("deletionGracePeriodSeconds") or 0)) + seconds(grace)
        if moved < now:
            moved, grace = now, 1 if grace else 0
        metadata["deletionTimestamp"] = moved.strftime(_FORMAT)
    elif graceful or not before or datetime.strptime(before, _FORMAT).replace(tzinfo=UTC) > now:
        metadata["deletionTimestamp"] = (now + seconds(grace)).strftime(_FORMAT)
    metadata["deletionGracePeriodSeconds"] = grace


async def _mark_and_remove(call: Call, served: Served, record: Record, obj: Obj) -> Deleted:
    """A graceful kind without time left: watchers see that it is being deleted, then that it is gone.

    The request does not wait for anything between the two: if it ended there, the object would stay marked.
    """
    _mark(obj, 0, graceful=True)
    if call.dry_run:
        obj["metadata"]["resourceVersion"] = str(record.revision)
        return Deleted(writes.unstored(obj), gone=True)
    store, moment = call.server.store, call.server.config.marked_for
    draft = await _drafted(record, obj)
    store.require(call.reverts)
    marked = store.put(store.table(served.table), obj, expected=record.revision, draft=draft)
    if moment:
        removal = asyncio.create_task(_remove_after(moment, call, served, marked), name=f"remove {marked.key}")
        return await asyncio.shield(removal)  # it is done even if the request ends
    return await _remove_drafted(call, served, marked, obj, Release((), by_update=False), draft)


# upstream: Store.Delete, where it sets ignoreNotFound
async def _remove_after(moment: float, call: Call, served: Served, marked: Record) -> Deleted:
    """Remove what was marked, as it is then; another request may have been faster."""
    await asyncio.sleep(moment)
    uid = marked.decode()["metadata"]["uid"]
    while (record := call.server.store.get(served.table, marked.key)) is not None:
        obj = record.decode()
        if obj["metadata"]["uid"] != uid:
            break
        try:
            return await _remove_record(call, served, record, obj)
        except (Mismatch, Missing):
            continue
    return Deleted(marked, gone=True)


async def _remove_record(
    call: Call, served: Served, record: Record, obj: Obj, dropped: tuple[str, ...] = ()
) -> Deleted:
    """`dropped`: finalizers of the stored object that the deletion's own policy removes."""
    if call.dry_run:
        return Deleted(record, gone=True)
    draft = await writes.removal_draft(record)
    return await _remove_drafted(call, served, record, obj, Release(dropped, by_update=False), draft)


async def _remove_drafted(
    call: Call, served: Served, record: Record, obj: Obj, release: Release, draft: Draft | None
) -> Deleted:
    """Removes the record before it waits for anything. `draft` is its object."""
    store = call.server.store
    store.require(call.reverts)
    table = store.table(served.table)
    last = store.remove(table, record.key, expected=record.revision, release=release, draft=draft)
    writes.after_removal(call, served, obj)
    await store.settled(last.revision)
    return Deleted(last, gone=True)


async def _unchanged(call: Call, record: Record) -> Deleted:
    """The deletion is under way already; no client hears of that before it is on disk."""
    await call.server.store.settled(record.revision)
    return Deleted(record, gone=False)


async def _store_marked(call: Call, served: Served, record: Record, obj: Obj) -> Deleted:
    obj["metadata"]["resourceVersion"] = str(record.revision)
    if await aside.run(len(record.data), _is_stored, obj, record):
        return await _unchanged(call, record)
    if call.dry_run:
        return Deleted(writes.unstored(obj), gone=False)
    store = call.server.store
    draft = await _drafted(record, obj)
    store.require(call.reverts)
    marked = store.put(store.table(served.table), obj, expected=record.revision, draft=draft)
    await store.settled(marked.revision)
    return Deleted(marked, gone=False)


def _is_stored(obj: Obj, record: Record) -> bool:
    return obj == record.decode()


async def _drafted(record: Record, obj: Obj) -> Draft | None:
    """A large object, encoded beside the loop."""
    return await aside.run(len(record.data), draft_of, obj) if len(record.data) >= aside.FROM else None


# --- collections

_AT_ONCE = 64
"""Objects of a collection that are deleted at the same time: with a journal they share a commit."""


async def delete_collection(call: Call) -> Response:  # upstream: Store.DeleteCollection
    served = call.resource
    accepted = respond.settle_form(call, custom=served.custom)
    negotiate.check_form(accepted, f"{served.go_type}List", listed=True)
    asked = list_options(call.query, watch=False, sharded=call.server.config.sharded)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = await selected(served, namespace, asked)
    options = await aside.run(len(call.request.body), read_options, call)
    if options.unsafe:
        detail = "is not allowed with DELETECOLLECTION, try again after removing the option"
        raise status.invalid("meta.k8s.io", "DeleteOptions", "", [field_errors.invalid(UNSAFE, True, detail)])
    store = call.server.store
    page = await listing.page(store, store.table(served.table), selection, asked)
    for start in range(0, len(page.records), _AT_ONCE):
        await _remove_some(call, served, page.records[start : start + _AT_ONCE], options)
    return await reads.listed(call, served, page.records, page.metadata(selection))


async def _remove_some(call: Call, served: Served, records: list[Record], options: DeleteOptions) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_refusal(call, served, record.key, options)) for record in records]
    for task in tasks:
        if (refusal := task.result()) is not None:
            raise refusal


async def _refusal(call: Call, served: Served, key: str, options: DeleteOptions) -> status.ApiError | Failed | None:
    """Delete one object; the error if it was refused. An object that is gone already counts as deleted."""
    try:
        await remove(call, served, key, options)
    except status.ApiError as error:
        return None if error.code == 404 else error
    except Failed as error:
        return error
    return None
