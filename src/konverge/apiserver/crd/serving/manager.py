"""The manager serves custom kinds as the definitions in the store say.

It is notified of every write of a definition, synchronously after the commit. Serving starts and stops at that moment;
what needs a write of its own (names, conditions, deleting instances) happens in the next iteration of the event loop:
upstream these are controllers that act after the response. While the disk fails it waits; when the disk works again,
every definition is looked at, as writes of the manager itself may have been taken back. Upstream: crdHandler
(pkg/apiserver/customresource_handler.go).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.crd.definition import naming, termination
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.storage import Event, Mismatch, Missing, Release, Store, Table
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.storage.records import encode
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.crd.serving.conversion_webhook import Caller
    from konverge.apiserver.crd.serving.resources import CustomServed

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
TABLE = f"{GROUP}/{PLURAL}"


class Manager:
    """Keeps the registry in line with the definitions."""

    def __init__(self, store: Store, registry: Registry, call: Caller) -> None:
        self._store = store
        self._call = call
        """Reaches conversion webhooks."""
        self._registry = registry
        self._served: dict[str, list[CustomServed]] = {}
        self._shapes: dict[str, bytes] = {}
        """What was compiled for a definition, to see whether a write changes any of it."""
        self._pending: set[str] = set()
        self._watched: set[str] = set()

    def start(self) -> None:
        """Serve the stored definitions, and follow their changes."""
        self._store.subscribe(TABLE, self._changed)
        self._store.on_recovery(self._settle_all)
        self._store.on_revert(self._restate_reverted)
        for record in list(self._store.table(TABLE).records.values()):
            definition = record.decode()
            self._serve(definition)
            self._later(record.name)

    def _settle_all(self) -> None:
        for name in self._store.table(TABLE).records:
            self._later(name)

    def find(self, served: Served) -> CustomServed | None:
        """What was compiled for a served custom resource."""
        resource = served.resource
        for custom in self._served.get(f"{resource.plural}.{resource.group}", ()):
            if custom.served is served:
                return custom
        return None

    def definitions(self) -> Iterable[Obj]:
        return (record.decode() for record in self._store.table(TABLE).records.values())

    # --- following

    def _changed(self, event: Event) -> None:
        if event.record is None:
            self._forget(event.key)
            group = event.key.partition(".")[2]
            for other in self._in_group(group):
                self._later(other["metadata"]["name"])
            return
        self._serve(event.record.decode())
        self._later(event.key)

    def _later(self, name: str) -> None:
        if name not in self._pending:
            self._pending.add(name)
            asyncio.get_running_loop().call_soon(self._settle, name)

    def _serve(self, definition: Obj) -> None:
        name = definition["metadata"]["name"]
        if not (naming.is_true(definition, "NamesAccepted") or naming.is_true(definition, "Established")):
            return
        accepted = definition["status"]["acceptedNames"]
        shape = encode([definition["spec"], accepted, bool(definition["metadata"].get("deletionTimestamp"))])
        if self._shapes.get(name) == shape:
            return
        # It imports schemas, rules and CEL, which a server without definitions does not need.
        from konverge.apiserver.crd.serving.resources import serve

        self._shapes[name] = shape
        before = self._served.get(name, [])
        self._served[name] = made = serve(definition, self._store, self._call)
        for custom in before:
            resource = custom.served.resource
            self._registry.remove(resource.group, resource.version, resource.plural)
        self._restate(made, definition)
        self._register(definition["spec"]["group"])

    def _register(self, group: str) -> None:
        """Register all kinds of a group again: the first version of a group is the preferred one."""
        members = [custom.served for name in sorted(self._served) for custom in self._served[name]]
        members = [served for served in members if served.resource.group == group]
        for served in members:
            self._registry.remove(group, served.resource.version, served.resource.plural)
        for served in sorted(members, key=lambda served: naming.version_rank(served.resource.version)):
            self._registry.add(served)

    def _forget(self, name: str) -> None:
        for custom in self._served.pop(name, ()):
            resource = custom.served.resource
            self._registry.remove(resource.group, resource.version, resource.plural)
        self._shapes.pop(name, None)

    def _restate(self, made: list[CustomServed], definition: Obj) -> None:
        """Encode the stored objects again under a changed schema, once, so that reads cost nothing more."""
        custom = _stored_version(made, definition)
        if custom is not None:
            table = self._store.table(custom.served.table)
            for key in table.records:
                _restate_one(table, key, custom)

    def _restate_reverted(self, table: Table, key: str) -> None:
        """An object that was taken back to a state from before the schema changed."""
        group, _, plural = table.name.rpartition("/")
        record = self._store.durable_record(TABLE, f"{plural}.{group}")
        if record is not None and key in table.records:
            custom = _stored_version(self._served.get(record.name, []), record.decode())
            if custom is not None:
                _restate_one(table, key, custom)

    # --- settling

    def _settle(self, name: str) -> None:
        self._pending.discard(name)
        with contextlib.suppress(Failed):  # `_settle_all` comes when the disk works again
            self._settle_now(name)

    def _settle_now(self, name: str) -> None:
        record = self._store.table(TABLE).records.get(name)
        if record is None:
            return
        definition = record.decode()
        group = definition["spec"]["group"]
        others = [other for other in self._in_group(group) if other["metadata"]["name"] != name]
        fresh = naming.accept(definition, others, timestamp())
        if fresh is not None:
            self._write(fresh, record.revision)
            for other in others:
                self._later(other["metadata"]["name"])
            return
        fresh = naming.establish(definition, timestamp())
        if fresh is not None:
            self._write(fresh, record.revision)
        elif termination.is_due(definition):
            self._terminate(definition, record.revision)

    def _in_group(self, group: str) -> list[Obj]:
        return [definition for definition in self.definitions() if definition["spec"]["group"] == group]

    def _write(self, definition: Obj, revision: int) -> None:
        naming.record_manager(definition, timestamp())
        try:
            self._store.put(self._store.table(TABLE), definition, expected=revision)
        except (Mismatch, Missing):
            self._later(definition["metadata"]["name"])

    def _terminate(self, definition: Obj, revision: int) -> None:
        """Delete the instances; when the last is gone, the definition goes."""
        begun = termination.begin(definition, timestamp())
        if begun is not None:
            self._write(begun, revision)
            return
        table = self._store.table(f"{definition['spec']['group']}/{definition['spec']['names']['plural']}")
        if naming.is_true(definition, "Established"):
            termination.delete_all(self._store, table)
        if table.records:
            self._watch_instances(definition["metadata"]["name"], table.name)
            return
        final = termination.finish(definition, timestamp())
        if final["metadata"].get("finalizers"):
            self._write(final, revision)
        else:
            release = Release((naming.FINALIZER,), by_update=True)
            name = definition["metadata"]["name"]
            self._store.remove(self._store.table(TABLE), name, expected=revision, final=final, release=release)

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


def _restate_one(table: Table, key: str, custom: CustomServed) -> None:
    record = table.records[key]
    data = encode(custom.kind.present(record.decode()))
    if data != record.data:
        table.records[key] = msgspec.structs.replace(record, data=data)
