"""The steps of a write, the same for all kinds: admission, the kind's preparation, validation, storage.

Other requests may write between reading the stored object and writing the new one (admission may wait for webhooks).
The store refuses such a write, and it begins again with the object as it is now.

Upstream: Store.Create and Store.Update (apiserver/pkg/registry/generic/registry/store.go), rest.BeforeCreate and
rest.BeforeUpdate (apiserver/pkg/registry/rest).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from konverge.apiserver import aside, field_errors, status
from konverge.apiserver.equality import equal
from konverge.apiserver.field_errors import FieldError, TooManyErrors
from konverge.apiserver.http import render, stored_size
from konverge.apiserver.http.bodies import media_type
from konverge.apiserver.http.listing import parse_version
from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.http.other_versions import answered
from konverge.apiserver.http.routing import require_served
from konverge.apiserver.merge.managed_entries import keep_times
from konverge.apiserver.merge.managed_fields import bare
from konverge.apiserver.meta import system, validate
from konverge.apiserver.registry import Served
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.request.call import Call
from konverge.apiserver.storage import Exists, Mismatch, Missing, Record, Release
from konverge.apiserver.storage.records import Draft, draft_of, encode, redrafted
from konverge.apiserver.strategy import Obj, StatusRules

_NAME_TRIES = 8  # upstream: maxNameGenerationCreateAttempts


class Written(msgspec.Struct, frozen=True):
    record: Record
    created: bool = False


def weight(call: Call, record: Record | None = None) -> int:
    """How large a write is, which decides whether it is computed aside: its body, what it changes, its schema."""
    return max(len(call.request.body), len(record.data) if record else 0, call.resource.weight)


def unstored(obj: Obj) -> Record:
    """What a dry run answers with: the object as it would have been stored, at no revision."""
    metadata = obj["metadata"]
    data = encode({key: value for key, value in obj.items() if key not in ("kind", "apiVersion")})
    return Record(metadata.get("namespace", ""), metadata["name"], 0, data)


def admission_request(
    call: Call, served: Served, obj: Obj | None, old: Obj | None, options: Obj, name: str, size: int = 0
) -> AdmissionRequest:
    """`size` is that of the stored object, if the write is about one."""
    namespace = call.info.namespace if served.resource.namespaced else ""
    _adjust_options(options, call)
    about = call, served, call.operation, call.subresource, namespace, name, obj, old, options, call.dry_run, call.user
    return AdmissionRequest(*about, max(size, weight(call)))


async def admit_unstored(
    call: Call, obj: Obj, options: WriteOptions, name: str, check: Callable[[Obj], None] | None = None
) -> Obj:
    """The admitted form of an object that is acted on and not stored: a Binding, an Eviction, a review.

    `check` raises for one that is not valid.
    """
    call.operation, call.dry_run = "CREATE", options.dry_run
    request = admission_request(call, call.resource, obj, None, options.body(), name)
    await call.server.admission.admit(request)
    if check is not None:
        await aside.run(request.size, check, request.new)
    await call.server.admission.validate(request)
    return request.new


def _adjust_options(options: Obj, call: Call) -> None:  # upstream: patchToCreateOptions, patchToUpdateOptions
    """Options as admission sees them: a patch is a create or an update there, and defaults are left out."""
    if "fieldValidation" in options and "fieldValidation" not in call.query:
        del options["fieldValidation"]
    if options.get("kind") == "PatchOptions":
        options["kind"] = "CreateOptions" if call.operation == "CREATE" else "UpdateOptions"
        options.pop("force", None)


def _invalid(served: Served, name: str, errors: list[FieldError]) -> status.ApiError:
    return status.invalid(served.reported_group, served.resource.kind, name, errors)


def stored_form(served: Served, obj: Obj) -> Obj:
    return obj if served.conversion is None else served.conversion.to_storage(obj)


def _stored_object(served: Served, record: Record) -> Obj:
    """The present object as the kind's strategy sees it: a custom kind has one for each version."""
    obj = record.decode()
    return served.conversion.from_storage(obj) if served.custom and served.conversion is not None else obj


def _narrowed(served: Served, obj: Obj) -> Obj:
    return obj if served.narrow is None else served.narrow(obj)


async def _settled(served: Served, obj: Obj) -> Obj:
    return obj if served.settle is None else await served.settle(obj)


# --- create


async def create(call: Call, served: Served, obj: Obj, options: WriteOptions) -> Record:
    """Store a new object; `obj` is decoded, defaulted and in the version of the path."""
    try:
        return await _create(call, served, obj, options)
    finally:
        if served.strategy.settle_claims is not None:
            served.strategy.settle_claims(call)


async def _create(call: Call, served: Served, obj: Obj, options: WriteOptions) -> Record:
    call.operation, call.dry_run = "CREATE", options.dry_run
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    request = admission_request(call, served, obj, None, options.body(), name)
    await call.server.admission.admit(request)
    obj = await aside.run(request.size, stored_form, served, request.new)
    metadata = obj["metadata"]
    system.drop_duplicate_owners(metadata, call, after_admission=True)
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    for _ in range(_NAME_TRIES if generated else 1):
        if generated:
            metadata["name"] = system.generate_name(metadata["generateName"])
        request.obj, request.name = obj, metadata.get("name") or ""
        await _prepare_new(call, served, obj, request)
        try:
            return await _store_new(call, served, obj)
        except Exists:
            continue
    raise _name_taken(call, served, metadata["name"], generated)


# upstream: rest.BeforeCreate
async def _prepare_new(call: Call, served: Served, obj: Obj, request: AdmissionRequest) -> None:
    strategy, metadata, size = served.strategy, obj["metadata"], weight(call)
    system.fill(metadata, system.timestamp())
    call.name = metadata.get("name") or ""
    if strategy.generation:
        metadata["generation"] = 1
    if strategy.settle_claims is None:
        await aside.run(size, strategy.prepare_create, obj, call)
    else:
        strategy.prepare_create(obj, call)
    await aside.run(size, _check_new, call, served, obj)
    await call.server.admission.validate(request)
    if call.dry_run:  # the real server checks it in its storage, which a dry run does not reach
        return
    if metadata.get("resourceVersion"):
        raise status.plain_500("resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)


def _check_new(call: Call, served: Served, obj: Obj) -> None:
    strategy = served.strategy
    namespaced = served.resource.namespaced
    errors = validate.on_create(
        obj["metadata"], namespaced=namespaced, name_check=strategy.name_check, builtin=not served.custom
    )
    try:
        errors += strategy.validate_create(obj, call)
    except TooManyErrors as given_up:
        errors += given_up.errors
    if errors:
        raise _invalid(served, call.name, errors)
    call.warn_all(strategy.warnings(obj, None, call))


async def _store_new(call: Call, served: Served, obj: Obj) -> Record:
    store = call.server.store
    obj = await _settled(served, _narrowed(served, obj))
    size = weight(call)
    if call.dry_run:
        unwritten = await aside.run(size, unstored, obj)
        if store.get(served.table, unwritten.key) is not None:
            raise Exists
        return unwritten
    record = await put(call, served, obj, expected=0, size=size)
    await store.settled(record.revision)
    return record


async def put(call: Call, served: Served, obj: Obj, *, expected: int, size: int) -> Record:
    """Write an object, if it is not larger than the real server's storage takes.

    Without its managedFields it may fit. An apply needs them, and is refused. `size` is the weight of the write.
    """
    store = call.server.store
    table, check = store.table(served.table), stored_size.limit(served, expected)
    while True:
        draft = await aside.run(size, draft_of, obj) if size >= aside.FROM else None
        store.require(call.reverts)
        if served.custom:
            require_served(call, served)
        try:
            if call.reserve is not None:
                call.reserve.check()
            record = store.put(table, obj, expected=expected, check=check, draft=draft)
        except stored_size.TooLarge:
            if _is_apply(call) or not obj["metadata"].pop("managedFields", None):
                raise
        else:
            if call.reserve is not None:
                call.reserve.book()
            return record


# upstream: rest.CheckGeneratedNameError
def _name_taken(call: Call, served: Served, name: str, generated: bool) -> status.ApiError:
    resource = served.resource
    error = status.already_exists(resource.group, resource.plural, name)
    if generated:
        error.message += ", the server was not able to generate a unique name for the object"
        error.details = {**(error.details or {}), "retryAfterSeconds": 1}
        error.headers["Retry-After"] = "1"
    key = f"{call.info.namespace}/{name}" if resource.namespaced else name
    record = call.server.store.get(served.table, key)
    if record is not None and record.decode()["metadata"].get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error


# --- update

Change = Callable[[Obj | None], Obj]
"""Makes the new object from the present one (None: there is none yet), both in the version of the path. It may be
called again, after another write or the answer of a conversion webhook."""


class Lens(Protocol):
    """An object as a subresource of another kind shows it (the Scale of a Deployment)."""

    def show(self, obj: Obj) -> Obj: ...
    def take(self, obj: Obj, shown: Obj) -> Obj:
        """The object with what was changed in the form that was shown."""


async def update(
    call: Call,
    served: Served,
    change: Change,
    options: WriteOptions,
    *,
    rules: StatusRules | None = None,
    creates: bool = False,
    lens: Lens | None = None,
) -> Written:
    """Write a changed object. `rules` are those of a subresource; `creates` allows a new object (apply).

    `lens` is for a subresource of another kind: admission sees the object through it.
    """
    call.dry_run = options.dry_run
    try:
        while True:
            record = call.server.store.get(served.table, call.key)
            try:
                if record is None:
                    return await _create_on_update(call, served, change, options, creates=creates)
                return Written(await _update_once(call, served, record, change, options, rules, lens))
            except (Mismatch, Missing, Exists):
                continue
    finally:
        if served.strategy.settle_claims is not None:
            served.strategy.settle_claims(call)


async def _create_on_update(
    call: Call, served: Served, change: Change, options: WriteOptions, *, creates: bool
) -> Written:
    if not creates and not (served.strategy.create_on_update and not call.subresource):
        raise status.not_found(served.resource.group, served.resource.plural, call.info.name)
    obj = await answered(weight(call), change, None)
    if obj["metadata"].get("uid"):
        raise uid_conflict(call, served, obj["metadata"]["uid"], "")
    system.wipe(obj["metadata"])
    obj["metadata"].pop("resourceVersion", None)
    return Written(await create(call, served, obj, options), created=True)


async def _update_once(
    call: Call,
    served: Served,
    record: Record,
    change: Change,
    options: WriteOptions,
    rules: StatusRules | None,
    lens: Lens | None,
) -> Record:
    call.operation = "UPDATE"
    size = weight(call, record)
    live, obj = await answered(size, _changed, served, record, change)
    _preconditions(call, served, record, obj, live)
    request = admission_request(call, served, obj, live, options.body(), call.info.name, size)
    if lens is not None:
        request.obj, request.old = lens.show(obj), lens.show(render.restored(served, record))
    await call.server.admission.admit(request)
    assert request.obj is not None
    obj = _to_store(call, served, record, request.obj if lens is None else lens.take(obj, request.obj))
    old = await aside.run(size, _stored_object, served, record)
    system.drop_duplicate_owners(obj["metadata"], call, after_admission=True)
    if served.strategy.settle_claims is None:
        await aside.run(size, _prepare_changed, call, served, obj, old, rules)
    else:
        _prepare_changed(call, served, obj, old, rules)
    await aside.run(size, _check_changed, call, served, obj, old, rules)
    request.obj = obj if lens is None else lens.show(obj)
    await call.server.admission.validate(request)
    return await _store_changed(call, served, record, obj, old)


def _changed(served: Served, record: Record, change: Change) -> tuple[Obj, Obj]:
    """The present object and the new one."""
    live = render.restored(served, record)
    return live, change(live)


def _to_store(call: Call, served: Served, record: Record, obj: Obj) -> Obj:
    """The form of a changed object that is stored.

    An apply that changes nothing leaves the object as it is stored, which the way through another version may not:
    autoscaling/v1 brings metrics into another order. Upstream: managedFieldsUpdater.Apply returns the live object.
    """
    if served.conversion is None or served.custom or not _is_apply(call):
        return stored_form(served, obj)
    if bare(obj) != bare(render.restored(served, record)):
        return stored_form(served, obj)
    stored = bare(record.decode())
    managed = obj["metadata"].get("managedFields")
    return {**stored, "metadata": {**stored["metadata"], **({"managedFields": managed} if managed else {})}}


def _is_apply(call: Call) -> bool:
    return media_type(call) == "application/apply-patch+yaml"


def _preconditions(call: Call, served: Served, record: Record, obj: Obj, live: Obj) -> None:
    """Optimistic locking by the resourceVersion and the uid in the new object."""
    metadata, resource, name = obj["metadata"], served.resource, call.info.name
    uid = metadata.get("uid") if call.info.method == "PUT" else ""  # a patch of the uid is an attempt to change it
    if uid and uid != live["metadata"].get("uid"):
        raise uid_conflict(call, served, uid, live["metadata"].get("uid", ""))
    version = metadata.get("resourceVersion") or ""
    try:
        wanted = parse_version(version)
    except ValueError as error:
        raise status.plain_500(str(error).partition(": ")[2].partition(": ")[2].partition(": ")[2]) from None
    if not wanted:
        if not served.strategy.unconditional_update:
            missing = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise status.invalid(resource.group, resource.plural, name, [missing])
        metadata["resourceVersion"] = str(record.revision)
    elif wanted != record.revision:
        raise status.conflict(resource.group, resource.plural, name, status.MODIFIED)


def uid_conflict(call: Call, served: Served, wanted: str, present: str) -> status.ApiError:
    """409: the object of this name is not the one that the client means."""
    root = "" if call.dry_run else "/registry"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {root}/{stored_size.place(served)}/{call.key}, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: {wanted}, UID in object meta: {present}"
    )
    return status.conflict(served.resource.group, served.resource.plural, call.info.name, why)


# upstream: rest.BeforeUpdate
def _prepare_changed(call: Call, served: Served, obj: Obj, old: Obj, rules: StatusRules | None) -> None:
    strategy, metadata, before = served.strategy, obj["metadata"], old["metadata"]
    if not call.dry_run:  # stored objects have none
        metadata.pop("selfLink", None)
    system.match_namespace(metadata, before.get("namespace", ""))
    system.set_generation(metadata, before.get("generation", 0))
    if rules is None:
        strategy.prepare_update(obj, old, call)
        if strategy.generation and system.changed_beyond_metadata(
            obj, old, status_too=strategy.status is None, custom=served.custom
        ):
            metadata["generation"] = before.get("generation", 0) + 1
    else:
        rules.prepare(obj, old, call)
    system.keep(metadata, before)


def _check_changed(call: Call, served: Served, obj: Obj, old: Obj, rules: StatusRules | None) -> None:
    strategy, metadata, before = served.strategy, obj["metadata"], old["metadata"]
    errors = validate.on_update(metadata, before, namespaced=served.resource.namespaced, builtin=not served.custom)
    try:
        errors += strategy.validate_update(obj, old, call) if rules is None else rules.validate(obj, old, call)
    except TooManyErrors as given_up:
        errors += given_up.errors
    if errors:
        raise _invalid(served, metadata["name"], errors)  # admission may have changed it
    if rules is None:
        call.warn_all(strategy.warnings(obj, old, call))


def _deletion_completes(metadata: Obj, before: Obj) -> bool:  # upstream: ShouldDeleteDuringUpdate
    """Whether the write removes the last finalizer of an object that is being deleted."""
    return (
        not metadata.get("finalizers")
        and bool(before.get("deletionTimestamp"))
        and not before.get("deletionGracePeriodSeconds")
    )


def dropped_finalizers(before: Obj, after: Obj) -> tuple[str, ...]:
    """The finalizers that a write removes."""
    left = set(after.get("finalizers") or ())
    return tuple(name for name in before.get("finalizers") or () if name not in left)


async def _store_changed(call: Call, served: Served, record: Record, obj: Obj, old: Obj) -> Record:
    store = call.server.store
    store.require(call.reverts)
    obj = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    deleting = _deletion_completes(obj["metadata"], old["metadata"]) and not is_held(served, obj)
    if deleting:
        if not call.dry_run:
            release = Release(dropped_finalizers(old["metadata"], obj["metadata"]), by_update=True)
            draft, table = await removal_draft(record), store.table(served.table)
            store.require(call.reverts)
            last = store.remove(table, record.key, expected=record.revision, release=release, draft=draft)
            after_removal(call, served, obj)
            await store.settled(last.revision)
        return unstored(await _settled(served, obj))
    size = weight(call, record)
    obj, same = await aside.run(size, _compared, served, obj, old, record)
    if same:
        await store.settled(record.revision)
        return record
    obj = await _settled(served, obj)
    if call.dry_run:
        return await aside.run(size, unstored, obj)
    written = await put(call, served, obj, expected=record.revision, size=size)
    await store.settled(written.revision)
    return written


async def removal_draft(record: Record) -> Draft | None:
    """The last state of a large object that is about to be removed, encoded beside the loop."""
    return await aside.run(len(record.data), redrafted, record) if len(record.data) >= aside.FROM else None


def _compared(served: Served, obj: Obj, old: Obj, record: Record) -> tuple[Obj, bool]:
    """The object as it is stored, and whether it is the one that is stored already."""
    obj = _narrowed(served, obj)
    obj["metadata"]["resourceVersion"] = str(record.revision)
    keep_times(old, obj)
    stale = served.is_stale is not None and served.is_stale(record.decode())  # upstream: origState.stale
    return obj, equal(obj, old) and not stale


def is_held(served: Served, obj: Obj) -> bool:
    """Whether the kind itself keeps an object that is being deleted, apart from finalizers."""
    return served.strategy.held is not None and served.strategy.held(obj)


def after_removal(call: Call, served: Served, obj: Obj) -> None:
    """Before anything is waited for: meanwhile others may take what is released."""
    if served.strategy.on_removed is not None:
        served.strategy.on_removed(obj, call)
