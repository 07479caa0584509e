"""What every function of an operator can do, whatever it is called for: read from caches, write what differs, record
events. `Context` adds the object of a reconcile, `TaskContext` the life of a task.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import force_setattr

from konverge.cache.informer import Informer
from konverge.cache.lister import Lister
from konverge.cache.record import Key, Record, new_key
from konverge.client import ApplyPatch, Client, Conflict, Invalid, NotFound
from konverge.client.options import ApplyOptions
from konverge.objects.codec import encode_hook
from konverge.objects.labels import Selector
from konverge.objects.meta import Object
from konverge.runtime.containment import first_difference, plain
from konverge.runtime.owners import require_ownership, set_controller_reference
from konverge.runtime.result import TransientError
from konverge.runtime.server_additions import ServerAdditions
from konverge.runtime.story.entry import Entry

K = TypeVar("K", bound=Object)

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode

COMPARED_ONCE = b"compared once"
"""In place of a digest, so that a first sync does not compute those of objects that never come again."""


class Recorder(Protocol):
    """Where events about an object go."""

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None: ...


class OwnedCache(NamedTuple):
    """A kind that was declared with `owns=`, and its cache."""

    kind: type[Object]
    informer: Informer
    owner_index: str
    """The name that the index of owners has in it."""


class Caches(Protocol):
    """The declared caches of a controller."""

    @property
    def additions(self) -> ServerAdditions: ...
    @property
    def owned_caches(self) -> Sequence[OwnedCache]: ...
    def lister(self, kind: type[K]) -> Lister[K] | None: ...
    def covering(self, kind: type[K], key: Key) -> Lister[K] | None: ...
    def covering_list(self, kind: type[K], namespace: str, selector: Selector | None) -> Lister[K] | None: ...
    def presence(self, kind: type[Object], key: Key) -> Informer | None: ...
    def serves(self, kind: type[Object]) -> bool: ...
    def require_namespace(self, kind: type[Object], namespace: str) -> None: ...
    def claim_set(self, name: str) -> None: ...
    def undeclared(self, kind: type[Object], verbs: tuple[str, ...], namespace: str, use: str = "") -> str: ...


def not_filled(informer: Informer) -> TransientError:
    """The key comes again, and the cache may have its first state by then."""
    why = f": {informer.error}" if informer.error else ""
    return TransientError(f"the cache of {informer.spec} is not filled yet{why}")


class Applied(NamedTuple):
    """How an apply ended."""

    differs: bool
    """It was not as desired; it was written, unless it was asked for to hold the write."""
    before: bytes | None
    after: bytes | None
    """As it is now; None only for an object that does not exist and was not to be written."""


class BaseContext:
    """Reads, writes and events of one controller or task."""

    client: Client
    log: logging.Logger
    _caches: Caches
    _recorder: Recorder
    _manager: str
    """The field manager of what is applied."""
    _entry: Entry | None = None
    """Where reads and events are noted, for the story."""

    def _default_namespace(self) -> str:
        """Where objects are whose namespace is not given."""
        return ""

    @property
    def entry(self) -> Entry | None:
        """What is noted of this reconcile, for `manager.story`."""
        return self._entry

    @property
    def caches(self) -> Caches:
        """The declared caches, for reading records rather than objects."""
        return self._caches

    # -------------------------------------------------------------- reading

    def serves(self, kind: type[Object]) -> bool:
        """Whether the cluster has this declared kind: its definition is installed, and the cache has its state."""
        return self._caches.serves(kind)

    async def get(self, kind: type[K], name: str, namespace: str | None = None) -> K | None:
        """Another object, by default in the same namespace: from the cache if the controller declared the kind.

        It is read live where no cache can know it: the kind is watched with a selector only, or its cache is not filled
        yet (those of other clusters and of optional kinds). LookupError in a namespace that was not declared.
        """
        where = self._namespace(kind, namespace)
        lister = self._caches.covering(kind, new_key((where, name)))
        if lister is not None:
            if self._entry is not None:
                self._entry.read(kind, where, name)
            return lister.get(name, where)
        self._caches.require_namespace(kind, where)
        self._check_declared(kind, ("get",), where)
        try:
            return await self.client.get(kind, name, where)
        except NotFound:
            return None

    async def list(self, kind: type[K], namespace: str | None = None, selector: Selector | None = None) -> Sequence[K]:
        """Other objects, by default of the same namespace: from the cache if the controller declared the kind.

        With a selector, from a watch with the same selector too. Else as for `get`: live, or LookupError.
        """
        where = self._namespace(kind, namespace)
        lister = self._caches.covering_list(kind, where, selector)
        if lister is not None:
            return self._noted(kind, where, str(selector or ""), lister.list(where or None, selector))
        self._caches.require_namespace(kind, where)
        self._check_declared(kind, ("list",), where)
        listed = await self.client.list(kind, where, label_selector=selector or "")
        return listed.items

    def indexed(self, kind: type[K], index: str, value: str) -> Sequence[K]:
        """The cached objects under a value of an index that the controller declares (`indexes=…`)."""
        lister = self._caches.lister(kind)
        if lister is None:
            raise LookupError(f"{kind.__name__} is not cached: declare uses=[Use({kind.__name__}, cached=True)]")
        return self._noted(kind, "", f"{index}={value}", self._filled(lister).by_index(index, value))

    @staticmethod
    def _filled(lister: Lister[K]) -> Lister[K]:
        """The same, if its cache knows what there is. An index cannot be read live."""
        if not lister.informer.readable:
            raise not_filled(lister.informer)
        return lister

    def _noted(self, kind: type[K], namespace: str, query: str, objects: Sequence[K]) -> Sequence[K]:
        """Objects that were read from a cache."""
        if self._entry is not None:
            self._entry.read(kind, namespace, query, len(objects))
        return objects

    def _namespace(self, kind: type[K], namespace: str | None) -> str:
        if not kind.resource.namespaced:
            return ""
        return self._default_namespace() if namespace is None else namespace

    def _check_declared(self, kind: type[Object], verbs: tuple[str, ...], namespace: str, use: str = "") -> None:
        """Log what the controller should declare, if it does not declare these verbs."""
        if text := self._caches.undeclared(kind, verbs, namespace, use):
            self.log.warning("%s", text)

    # -------------------------------------------------------------- writing

    async def _apply(
        self,
        desired: Object,
        owner: Object | None,
        *,
        adopt: bool = False,
        force: bool = True,
        hold: bool = False,
        dry_run: bool = False,
    ) -> Applied:
        """Server-side apply, as `Context.apply` has it; without an owner nothing is checked and no reference is set.

        With `hold` only the comparison is made.
        """
        kind, meta = type(desired), desired.metadata
        if kind.resource.namespaced and not meta.namespace:
            meta.namespace = self._default_namespace()
        if owner is not None:
            set_controller_reference(owner, desired)
        key = Key(meta.namespace, meta.name)
        raw, record = await self._present(kind, key) if owner is not None else self._cached(kind, key)
        digest = self._digest(desired) if record is not None and record.contains else COMPARED_ONCE
        if record is not None and record.contains == digest:
            return Applied(False, raw, raw)  # an owner's reference is among what it contains
        uid = ""
        if raw is not None:
            live = _decode(raw)
            if owner is not None:
                require_ownership(owner, desired, live["metadata"], adopt=adopt)
                uid = live["metadata"]["uid"]
            path = first_difference(plain(desired), live, self._manager, partial(self._caches.additions.has, kind))
            if not path:
                if record is not None:
                    force_setattr(record, "contains", digest)
                return Applied(False, raw, raw)
            self.log.debug("%s %s differs at %s", kind.__name__, meta.name, path)
        elif owner is not None:
            # An object that another client made just now is not taken over: its fields are a conflict.
            force = False
        if hold:
            return Applied(True, raw, raw)
        self._check_declared(kind, ("patch",) if raw is not None else ("patch", "create"), meta.namespace, "apply")
        answer = await self._send_apply(desired, uid, force, dry_run)
        if raw is not None and not dry_run:
            self._learn(kind, desired, answer)
        return Applied(True, raw, answer)

    def _learn(self, kind: type[Object], desired: Object, answer: bytes) -> None:
        """What an apply did not remove is no field of ours that has to go: the server added it."""

        def added(path: str, value: Any) -> bool:
            self._caches.additions.add(kind, path, value)
            return True

        first_difference(plain(desired), _decode(answer), self._manager, added)

    async def _send_apply(self, desired: Object, uid: str, force: bool, dry_run: bool) -> bytes:
        """An apply that is refused when the object is no longer the one with this uid, replaced or deleted."""
        kind, meta = type(desired), desired.metadata
        if uid:
            desired = msgspec.structs.replace(desired, metadata=msgspec.structs.replace(meta, uid=uid))
        options: ApplyOptions = {"field_manager": self._manager, "force": force}
        if dry_run:
            options["dry_run"] = True
        try:
            return await self.client.send_patch(kind, meta.name, ApplyPatch(desired), meta.namespace, **options)
        except Invalid as error:
            # Of an object that is gone the server says Conflict, and of one that was replaced that a uid cannot change.
            if uid and any(cause.field == "metadata.uid" for cause in error.causes):
                raise Conflict(error.status, request=error.request) from error
            raise

    def _digest(self, desired: Object) -> bytes:
        """Of all that a comparison with `desired` depends on, beside the object that it is compared with."""
        from hashlib import blake2b  # half a megabyte that an operator without server-side apply does not need

        return blake2b(_encode((self._manager, desired)), digest_size=16).digest()

    async def _present(self, kind: type[K], key: Key) -> tuple[bytes | None, Record | None]:
        """An object as it is in the cluster: from the cache, with its record there; where a cache cannot say that it is
        absent, live."""
        informer = self._caches.presence(kind, key)
        if informer is not None:
            record = informer.get(key)
            if self._entry is not None:
                self._entry.read(kind, key.namespace, key.name)
            if record is None and informer.served:
                return None, None
            if record is not None and informer.spec.whole:
                return record.raw, record  # of a cache that keeps less, every field that was not kept would differ
        self._check_declared(kind, ("get",), key.namespace, "apply")
        try:
            return await self.client.get_bytes(kind, key.name, key.namespace), None
        except NotFound:
            return None, None

    async def delete(self, kind: type[K], name: str, namespace: str | None = None) -> bool:
        """Delete an object; False when it is gone already.

        What is deleted is the object that the cache shows: one that has taken its name since then is a Conflict.
        """
        where = self._namespace(kind, namespace)
        informer = self._caches.presence(kind, Key(where, name))
        record = None if informer is None else informer.get(Key(where, name))
        if informer is not None and record is None:
            return False
        uid = "" if record is None else record.uid
        self._check_declared(kind, ("delete",), where)
        try:
            await self.client.delete(kind, name, where, propagation="Background", uid=uid)
        except NotFound:
            return False
        return True

    def _cached(self, kind: type[Any], key: Key) -> tuple[bytes | None, Record | None]:
        informer = self._caches.presence(kind, key)
        record = None if informer is None or not informer.spec.whole else informer.get(key)
        return (None, None) if record is None else (record.raw, record)
