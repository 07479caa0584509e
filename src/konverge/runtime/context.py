"""What a reconciler works with: the object, the caches, and writes that are sent only when something differs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from konverge.cache.record import Record, receive
from konverge.client import Client, Conflict, MergePatch, NotFound, merge_between
from konverge.objects.codec import decoder, encode_hook, from_json, to_dict
from konverge.objects.meta import Object
from konverge.runtime.base_context import BaseContext
from konverge.runtime.base_context import Caches as Caches
from konverge.runtime.base_context import Recorder as Recorder
from konverge.runtime.owners import is_controlled_by
from konverge.runtime.reasons import Reason
from konverge.runtime.result import Request
from konverge.runtime.status_merge import Keys, Unkept, changes_on, keys_of
from konverge.runtime.story.entry import Entry

if TYPE_CHECKING:
    from konverge.runtime.apply_set import Child, SetResult
    from konverge.runtime.clusters.access import OtherClusters

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Object)

STATUS_ATTEMPTS = 5
"""How often a status is written, when other writers are faster each time."""


class _StatusHead(msgspec.Struct):
    status: dict[str, Any] | None = None


_read_status = msgspec.json.Decoder(_StatusHead).decode
_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_status_only: dict[type[Any], Any] = {}
"""Class of a status -> a struct with nothing but such a status."""


class Context(BaseContext, Generic[T]):
    """One reconcile of one object.

    `ctx.obj` is this reconcile's own copy: change it freely. Its status is written by `save_status`, as the difference
    to what it was.
    """

    cluster: str = ""
    """The name of the cluster that the object is in; empty for the home cluster."""
    _clusters: OtherClusters | None = None
    _sets: dict[str, str] | None = None
    """Where a reconcile uses `apply_set`: token of a child -> the set that it is in, so that no two fight about it."""

    def __init__(
        self,
        request: Request,
        kind: type[T],
        record: Record,
        *,
        client: Client,
        caches: Caches,
        recorder: Recorder,
        manager: str,
        reasons: tuple[Reason, ...],
        log: logging.Logger,
        entry: Entry | None = None,
        unkept: Unkept | None = None,
    ) -> None:
        """`entry` notes what is read and reported; `unkept` lasts from one reconcile to the next."""
        self.request = request
        self.client = client
        self.reasons = reasons
        self.log = log
        self.obj: T = from_json(kind, record.raw)
        self._kind = kind
        self._record = record
        self._version = self.obj.metadata.resource_version
        self._read_twice = False
        """Whether `_record` is a later state than the one that `obj` was read from."""
        self._status_read = _encode(getattr(self.obj, "status", None))
        """The status as it was read: cheaper to compare with than to read it again."""
        self._saved: dict[str, Any] | None = None
        """The status as it was last saved."""
        self._caches = caches
        self._recorder = recorder
        self._manager = manager
        self._entry = entry
        self._unkept = Unkept() if unkept is None else unkept

    @property
    def deleting(self) -> bool:
        """Deletion of the object has been requested."""
        return self.obj.metadata.deletion_timestamp is not None

    @property
    def clusters(self) -> OtherClusters:
        """The other clusters by name, where the manager has some: `ctx.clusters["east"].client`."""
        if self._clusters is None:
            raise LookupError("this manager knows no other clusters: declare them with Manager(clusters=…)")
        return self._clusters

    def _default_namespace(self) -> str:
        return self.request.namespace

    async def owned(self, kind: type[K]) -> Sequence[K]:
        """The objects of a kind that this one controls; not those that have it as an owner beside."""
        lister = self._caches.lister(kind)
        if lister is None or not lister.has_index("owner"):
            raise LookupError(f"{kind.__name__} is not cached by owner: declare it with owns=[{kind.__name__}]")
        named = self._filled(lister).by_index("owner", self.obj.metadata.uid)  # by those that go with it, too
        return self._noted(kind, "", "owned", [child for child in named if is_controlled_by(child, self.obj)])

    # -------------------------------------------------------------- writing

    async def apply(self, desired: K, *, own: bool = True, adopt: bool = False, force: bool = True) -> bool:
        """Server-side apply; no request when the cached object already is as desired. True when it was written.

            await ctx.apply(deployment_for(ctx.obj))

        Exactly the fields in `desired` are owned: a field that is left out next time is given up.

        With `own` (the default) the object is controlled by the one being reconciled, and only two objects are written:
        one that does not exist yet, and one whose controller reference has the uid of `ctx.obj`. Any other is left
        alone, and `NotOwned` is raised. An object without a controller is adopted when it carries the annotation
        `konverge.dev/adopt-by: <Kind>/<name>` of `ctx.obj`, or with `adopt=True`; one with another controller never.

        With `own=False` nothing is checked and no reference is set: for single fields of objects that belong to others.
        """
        return (await self._apply(desired, self.obj if own else None, adopt=adopt, force=force)).differs

    async def apply_set(
        self,
        children: Iterable[Object | Child[Any]] = (),
        *,
        stages: Iterable[Iterable[Object | Child[Any]]] = (),
        name: str = "",
        dry_run: bool = False,
    ) -> SetResult:
        """Apply all children, each as `apply` does, and delete those of earlier calls that are not among them.

            result = await ctx.apply_set([config, Child(web, after=[config])])
            result = await ctx.apply_set(stages=[[claim], [database], [web, service]])

        A child is written while all that it comes `after` (a stage: the one before) are ready. Only objects that
        this object controls and that an earlier call for the set of this `name` applied are deleted, those that others
        come after last; nothing is deleted while a child could not be applied. All kinds are declared with `owns=`.
        The result says what was written and what is waited for. `dry_run` writes nothing and returns the difference.
        """
        from konverge.runtime.apply_set.run import apply_set

        if not dry_run:
            self._caches.claim_set(name)
        sets = self._sets = {} if self._sets is None else self._sets
        return await apply_set(self, children, stages, name=name, dry_run=dry_run, apply=self._apply, sets=sets)

    async def save_status(self) -> bool:
        """Write what changed in `ctx.obj.status`; no request when nothing did. True when it was written.

        What other writers changed stays: conditions are merged by type, other lists with keys (`ListType("map", …)`)
        by theirs. The write is guarded by the version that was read; when the object has changed since, its status is
        read again and our changes are made on that. Changes that the server does not keep, because the definition in
        the cluster is an earlier one, are sent once an hour. The status of an object that was deleted, or replaced by
        another of the same name, needs no writing: that is not a failure.
        """
        status: Any = getattr(self.obj, "status", None)
        if self._saved is None:
            if _encode(status) == self._status_read:
                return False
            as_read = self._status_before()
            if status == as_read:
                return False
            before = to_dict(as_read)
        else:
            before = self._saved
        wanted = to_dict(status)
        try:
            written = await self._write_status(before, wanted, keys_of(type(status)))
        except NotFound as error:
            if error.details.name != self.request.name:
                raise  # the subresource is missing, not the object
            return False
        self._saved = wanted
        return written

    async def _write_status(self, before: dict[str, Any], wanted: dict[str, Any], keys: dict[str, Keys]) -> bool:
        attempt = 0
        while True:
            attempt += 1
            changes = changes_on(before, wanted, _read_status(self._record.raw).status or {}, keys)
            if not changes or self._unkept.knows(self.request, self._version, changes):
                return False
            sent_on = self._version
            try:
                await self._patch(
                    MergePatch({"metadata": {"resourceVersion": self._version}, "status": changes}), "status"
                )
            except Conflict:
                if attempt == STATUS_ATTEMPTS:
                    raise
                if not await self._read_again():
                    return False
            else:
                if self._version != sent_on:
                    return True
                self._unkept.add(self.request, sent_on, changes)
                return False

    async def _read_again(self) -> bool:
        """Take the present state as the one to write on; False when this object is gone."""
        name, namespace = self.request.name, self.request.namespace
        _, record, meta = receive(await self.client.get_bytes(self._kind, name, namespace))
        # `ctx.obj` stays as it was read, and so does its version: labels and finalizers were not read again.
        self._record, self._version, self._read_twice = record, meta.resource_version, True
        return record.uid == self.obj.metadata.uid

    def _status_before(self) -> Any:
        """The status as it was read, alone: the rest of the object need not be decoded again."""
        status: Any = getattr(self.obj, "status", None)
        kind = type(status)
        if kind not in _status_only:
            _status_only[kind] = msgspec.defstruct("StatusOnly", [("status", kind | None, None)])
        status = decoder(_status_only[kind]).decode(self._record.raw).status
        return kind() if status is None else status

    async def save_metadata(self) -> bool:
        """Write what changed in labels, annotations and finalizers, guarded by the version that was read."""
        before = to_dict(from_json(self._kind, self._record.raw))["metadata"]
        names = ("labels", "annotations", "finalizers")
        after = to_dict(self.obj)["metadata"]
        patch = merge_between(
            {"metadata": {name: before.get(name) for name in names}},
            {"metadata": {name: after.get(name) for name in names}},
        )
        if not patch:
            return False
        guarded = dict(patch.body)
        guarded["metadata"] = {**guarded["metadata"], "resourceVersion": self.obj.metadata.resource_version}
        self._check_declared(self._kind, ("patch",), self.request.namespace)
        await self._patch(MergePatch(guarded), "")
        return True

    async def _patch(self, patch: MergePatch, subresource: str) -> None:
        written = await self.client.send_patch(
            self._kind,
            self.request.name,
            patch,
            self.request.namespace,
            subresource=subresource,
            field_manager=self._manager,
        )
        # The next difference is computed from what was written now.
        self._record = msgspec.structs.replace(self._record, raw=written, contains=b"")
        self._version = self._record.meta.resource_version
        if not self._read_twice:
            self.obj.metadata.resource_version = self._version
        # Not the generation: if it rose, a spec was changed that this reconcile has not seen.

    # -------------------------------------------------------------- events

    def event(self, reason: str, message: str, *, type: str = "Normal", about: Object | None = None) -> None:
        """Record an event about the object (or another one), as kubectl describe shows it."""
        if self._entry is not None:
            self._entry.event(type, reason, message, about or self.obj)
        self._recorder.event(reason, message, about=about or self.obj, type=type)

    def warning(self, reason: str, message: str, *, about: Object | None = None) -> None:
        self.event(reason, message, type="Warning", about=about)
