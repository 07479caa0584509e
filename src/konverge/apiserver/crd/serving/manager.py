"""The manager serves custom kinds as the definitions in the store say.

It is notified of every write of a definition, synchronously after the commit. Serving starts and stops at that moment;
what needs a write of its own (names, conditions, deleting instances) happens in the next iteration of the event loop:
upstream these are controllers that act after the response. While the disk fails it waits; when the disk works again,
every definition is looked at, as writes of the manager itself may have been taken back. Upstream: crdHandler
(pkg/apiserver/customresource_handler.go).

A definition that is large, or has many stored objects, is compiled aside (`aside.py`). Until that is done its kind is
served as before, and a new one is not established.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.crd.definition import naming, termination
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.release import release
from konverge.apiserver.storage import Event, Mismatch, Missing, Record, Release, Store, Table
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.storage.records import draft_of, encode
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.crd.serving.conversion_webhook import Caller
    from konverge.apiserver.crd.serving.resources import CustomServed
    from konverge.apiserver.crd.serving.strategy import CustomKind
    from konverge.apiserver.request.call import Call

log = logging.getLogger("konverge.apiserver")

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
TABLE = f"{GROUP}/{PLURAL}"
_LONG_WAIT = 8 * aside.FROM
"""Bytes of a definition whose first write would hold all others up: a tenth of a second."""
_PER_OBJECT = 200
"""Bytes of a definition that take as long to compile as it takes to encode one stored object again."""
_PASSES = 3
"""How often the objects that were written meanwhile are encoded aside, before the rest is done on the loop."""

Restated = dict[str, tuple[Record | None, Record | None]]
"""Stored objects by key: as they were, and as a changed schema shows them."""
_NONE = (None, None)
Shape = tuple[bytes, bool]
"""Spec and names of a definition, and whether it is being deleted."""


@dataclass(slots=True, repr=False)
class _Compiled:
    """What a definition is served by."""

    definition: Obj
    shape: Shape
    made: list[CustomServed]

    @property
    def stored(self) -> CustomServed | None:
        return _stored_version(self.made, self.definition)


_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_entries = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode = msgspec.json.Decoder().decode


def outline(record: Record) -> Obj:
    """A definition whose large parts stay JSON: the versions, and the fields in managedFields. Names and conditions are
    settled on the loop, and to decode a nested definition of 1 MB takes a tenth of a second and more."""
    parts = _parts(record.data)
    metadata, spec = _decoded_but("managedFields", _parts(parts["metadata"])), _parts(parts["spec"])
    if managed := metadata.get("managedFields"):
        metadata["managedFields"] = [_decoded_but("fieldsV1", entry) for entry in _entries(managed)]
    obj = {name: _decode(part) for name, part in parts.items() if name not in ("metadata", "spec")}
    return {"metadata": metadata, "spec": _decoded_but("versions", spec), **obj}


def _decoded_but(large: str, parts: dict[str, msgspec.Raw]) -> Obj:
    return {name: part if name == large else _decode(part) for name, part in parts.items()}


def _restated(custom: CustomServed, record: Record) -> Record:
    """A stored object as the schema shows it."""
    data = encode(custom.kind.present(record.decode()))
    return record if data == record.data else msgspec.structs.replace(record, data=data)


def _all_restated(custom: CustomServed, records: list[tuple[str, Record]]) -> Restated:
    return {key: (record, _restated(custom, record)) for key, record in records}


@contextlib.contextmanager
def _skipped(name: str) -> Iterator[None]:
    """One definition that cannot be served, by an error of ours, costs its kind alone: the other kinds, the other
    subscribers of the table and the start of the server do not depend on it."""
    try:
        yield
    except Exception:
        log.exception("cannot serve the kind of definition %s; it is served as before, or not at all", name)


class Manager:
    """Keeps the registry in line with the definitions."""

    def __init__(self, store: Store, registry: Registry, call: Caller) -> None:
        self._store = store
        self._call = call
        """Reaches conversion webhooks."""
        self._registry = registry
        self._served: dict[str, list[CustomServed]] = {}
        self._shapes: dict[str, Shape] = {}
        """What was compiled for a definition, to see whether a write changes any of it."""
        self._pending: set[str] = set()
        self._watched: set[str] = set()
        self._deleting: dict[str, Iterator[None]] = {}
        self._compiling: dict[str, asyncio.Task[None]] = {}
        self._releasing: set[asyncio.Task[None]] = set()
        """What gives back what large definitions were compiled to."""
        self._is_stopped = False

    def start(self) -> None:
        """Serve the stored definitions, and follow their changes."""
        self._store.subscribe(TABLE, self._changed)
        self._store.on_recovery(self._settle_all)
        self._store.on_revert(self._restate_reverted)
        for record in list(self._store.table(TABLE).records.values()):
            self._serve(record)
            self._later(record.name)

    def _settle_all(self) -> None:
        for name in self._store.table(TABLE).records:
            self._later(name)

    async def caught_up(self, call: Call) -> None:
        """Until what was written is served, large definitions included.

        kube-apiserver answers earlier; who waits for the condition Established sees no difference.
        """
        names = {call.name} | self._pending | self._compiling.keys()
        while (names := {name for name in names if self._is_under_way(name)}) and not self._is_stopped:
            tasks = [self._compiling[name] for name in names if name in self._compiling]
            if tasks:
                await asyncio.wait(tasks)
            await asyncio.sleep(0)
            try:
                await self._store.settled(self._store.revision)
            except Failed:
                return  # `_settle_all` comes when the disk works again

    def _is_under_way(self, name: str) -> bool:
        """Whether a definition is about to change, or has changed and is not served like that before it is on disk."""
        record = self._store.get(TABLE, name)
        is_on_disk = record is None or record.revision <= self._store.durable
        return name in self._pending or name in self._compiling or not is_on_disk

    async def stop(self) -> None:
        """End what is being compiled; compile and write nothing more: the store is about to be closed."""
        self._is_stopped = True
        tasks = [*self._compiling.values(), *self._releasing]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._compiling.clear()  # one that had not begun could not do so itself

    def find(self, served: Served) -> CustomServed | None:
        """What was compiled for a served custom resource."""
        resource = served.resource
        for custom in self._served.get(f"{resource.plural}.{resource.group}", ()):
            if custom.served is served:
                return custom
        return None

    # --- following

    def _changed(self, event: Event) -> None:
        if event.record is None:
            self._forget(event.key)
            for other in self._in_group(event.key.partition(".")[2]):
                self._later(other)
            return
        if self._is_long(event.record):
            self._serve_later(event.key)
        elif event.key not in self._compiling:  # which sees this write as well
            self._serve(event.record)
        self._later(event.key)

    def _later(self, name: str) -> None:
        if name not in self._pending and not self._is_stopped:
            self._pending.add(name)
            asyncio.get_running_loop().call_soon(self._settle, name)

    def _is_long(self, record: Record) -> bool:
        group, plural = record.name.partition(".")[2], record.name.partition(".")[0]
        objects = len(self._store.table(f"{group}/{plural}").records)
        return len(record.data) + _PER_OBJECT * objects >= aside.FROM

    def _serve(self, record: Record) -> None:
        with _skipped(record.name):
            compiled = self._compiled(record)
            if compiled is not None:
                self._install(compiled, {})

    def _serve_later(self, name: str) -> None:
        if name not in self._compiling and not self._is_stopped:
            self._compiling[name] = asyncio.create_task(self._serve_aside(name), name=f"compile {name}")

    async def _serve_aside(self, name: str) -> None:
        """Serve a definition as it is when this begins, then as it has become, until it does not change any more."""
        record = None
        try:
            while (present := self._store.durable_record(TABLE, name)) is not None and present is not record:
                record = present
                with _skipped(name):
                    compiled = await aside.run(aside.FROM, self._prepared, record)
                    if compiled is not None:
                        restated = await self._restated_aside(compiled)
                        self._install(compiled, restated)
        finally:
            if self._compiling.get(name) is asyncio.current_task():
                del self._compiling[name]
        self._later(name)

    async def _restated_aside(self, compiled: _Compiled) -> Restated:
        custom, restated = compiled.stored, Restated()
        for _ in range(0 if custom is None else _PASSES):
            assert custom is not None
            present = self._store.table(custom.served.table).records
            fresh = [(key, record) for key, record in present.items() if restated.get(key, _NONE)[0] is not record]
            restated |= await aside.run(_PER_OBJECT * len(fresh), _all_restated, custom, fresh)
        return restated

    def _compiled(self, record: Record) -> _Compiled | None:
        """None where the definition is not to be served, or is served like this already."""
        definition = record.decode()
        if not (naming.is_true(definition, "NamesAccepted") or naming.is_true(definition, "Established")):
            return None
        accepted = definition["status"]["acceptedNames"]
        shape = encode([definition["spec"], accepted]), bool(definition["metadata"].get("deletionTimestamp"))
        if self._shapes.get(record.name) == shape:
            return None
        # It imports schemas, rules and CEL, which a server without definitions does not need.
        from konverge.apiserver.crd.serving.resources import serve

        return _Compiled(definition, shape, serve(definition, self._store, self._call))

    def _prepared(self, record: Record) -> _Compiled | None:
        """The same, with all that the first write would wait for."""
        compiled = self._compiled(record)
        if compiled is not None and len(record.data) >= _LONG_WAIT:
            for custom in compiled.made:
                custom.kind.prepare()
        return compiled

    def _install(self, compiled: _Compiled, restated: Restated) -> None:
        """Serve what was compiled. Stored objects are encoded again under a changed schema, so that reads cost nothing
        more; `restated` has those that were encoded aside."""
        name = compiled.definition["metadata"]["name"]
        before = self._shapes.get(name)
        if before is not None and before[0] == compiled.shape[0]:  # its objects are still to be deleted: watches go on
            watchers = {custom.kind.version: custom.served.watchers for custom in self._served[name]}
            for custom in compiled.made:
                custom.served.watchers = watchers[custom.kind.version]
            for custom in self._served[name]:
                custom.served.watchers = set()
        self._shapes[name] = compiled.shape
        self._withdraw(name, kept={custom.kind for custom in compiled.made})
        self._served[name] = compiled.made
        stored = compiled.stored
        if stored is not None:
            self._restate(stored, restated)
        self._register(compiled.definition["spec"]["group"])

    def _restate(self, custom: CustomServed, restated: Restated) -> None:
        """Only what was written since it was encoded aside is encoded here."""
        records = self._store.table(custom.served.table).records
        for key, record in records.items():
            before, shown = restated.get(key, _NONE)
            if before is not record:
                shown = _restated(custom, record)
            if shown is not None and shown is not record:
                records[key] = shown

    def _register(self, group: str) -> None:
        """Register all kinds of a group again: the first version of a group is the preferred one."""
        members = [custom.served for name in sorted(self._served) for custom in self._served[name]]
        members = [served for served in members if served.resource.group == group]
        for served in members:
            self._registry.remove(group, served.resource.version, served.resource.plural)
        for served in sorted(members, key=lambda served: naming.version_rank(served.resource.version)):
            self._registry.add(served)

    def _withdraw(self, name: str, kept: Collection[CustomKind] = ()) -> None:
        """Serve a definition no more as it was compiled: its watches end. Upstream: crdHandler.tearDown.

        What it was compiled to is freed aside where it is much, and not among those that are `kept`.
        """
        before = self._served.pop(name, [])
        weight = 0
        for custom in before:
            for stream in custom.served.watchers:
                stream.end()
            weight += 0 if custom.kind in kept else custom.served.weight
            resource = custom.served.resource
            self._registry.remove(resource.group, resource.version, resource.plural)
        if weight >= aside.FROM and not self._is_stopped:
            task = asyncio.create_task(release(before), name=f"release {name}")
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    def _forget(self, name: str) -> None:
        self._withdraw(name)
        self._shapes.pop(name, None)
        compiling = self._compiling.pop(name, None)
        if compiling is not None:
            compiling.cancel()

    def _restate_reverted(self, table: Table, key: str) -> None:
        """An object that was taken back to a state from before the schema changed."""
        group, _, plural = table.name.rpartition("/")
        record = self._store.durable_record(TABLE, f"{plural}.{group}")
        if record is not None and key in table.records:
            custom = _stored_version(self._served.get(record.name, []), record.decode())
            if custom is not None:
                table.records[key] = _restated(custom, table.records[key])

    # --- settling

    def _settle(self, name: str) -> None:
        self._pending.discard(name)
        if self._is_stopped:
            return
        with contextlib.suppress(Failed):  # `_settle_all` comes when the disk works again
            self._settle_now(name)

    def _settle_now(self, name: str) -> None:
        record = self._store.table(TABLE).records.get(name)
        if record is None or name in self._compiling:  # which comes back here
            return
        definition = outline(record)
        others = [other for other in self._in_group(definition["spec"]["group"]) if other != name]
        fresh = naming.accept(definition, self._outlines(others), timestamp())
        if fresh is not None:
            self._write(fresh, record.revision)
            for other in others:
                self._later(other)
            return
        fresh = naming.establish(definition, timestamp())
        if fresh is not None:
            self._write(fresh, record.revision)
        elif termination.is_due(definition):
            self._terminate(definition, record.revision)

    def _in_group(self, group: str) -> list[str]:
        """The names of its definitions."""
        return [name for name in self._store.table(TABLE).records if name.partition(".")[2] == group]

    def _outlines(self, names: list[str]) -> Iterator[Obj]:
        """Made when they are asked for: most definitions have their names already."""
        records = self._store.table(TABLE).records
        return (outline(records[name]) for name in names)

    def _write(self, definition: Obj, revision: int) -> None:
        naming.record_manager(definition, timestamp())
        try:
            draft = draft_of(definition, deeper=False)
            self._store.put(self._store.table(TABLE), definition, expected=revision, draft=draft)
        except (Mismatch, Missing):
            self._later(definition["metadata"]["name"])

    def _terminate(self, definition: Obj, revision: int) -> None:
        """Delete the instances; when the last is gone, the definition goes."""
        begun = termination.begin(definition, timestamp())
        if begun is not None:
            self._write(begun, revision)
            return
        table = self._store.table(f"{definition['spec']['group']}/{definition['spec']['names']['plural']}")
        name = definition["metadata"]["name"]
        if naming.is_true(definition, "Established"):
            deleting = self._deleting.pop(name, None) or termination.delete_all(self._store, table)
            for _ in deleting:
                self._deleting[name] = deleting
                self._later(name)
                return
        if table.records:
            self._watch_instances(name, table.name)
            return
        final = termination.finish(definition, timestamp())
        if final["metadata"].get("finalizers"):
            self._write(final, revision)
        else:
            release = Release((naming.FINALIZER,), by_update=True)
            draft = draft_of(final, deeper=False)
            self._store.remove(self._store.table(TABLE), name, expected=revision, draft=draft, release=release)

    def _watch_instances(self, name: str, table: str) -> None:
        if name in self._watched:
            return
        self._watched.add(name)
        subscribers = self._store.table(table).subscribers

        def changed(event: Event) -> None:
            if not self._store.table(table).records:
                subscribers.remove(changed)
                self._watched.discard(name)
                self._later(name)

        subscribers.append(changed)


def _stored_version(made: list[CustomServed], definition: Obj) -> CustomServed | None:
    """The version in which objects are stored, if reads show them as they are."""
    storage = {version["name"] for version in definition["spec"]["versions"] if version.get("storage")}
    custom = next((custom for custom in made if custom.kind.version in storage), None)
    return custom if custom is not None and custom.served.conversion is None else None
