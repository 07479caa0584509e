"""The server's own access to its objects: no request, no authorization, no admission."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from konverge.apiserver import aside
from konverge.apiserver.meta import system
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.storage import Exists, Mismatch, Missing, Record, Store
from konverge.apiserver.storage.records import draft_of
from konverge.apiserver.strategy import Obj


def _table(group: str, plural: str) -> str:
    return f"{group}/{plural}"


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _changed(record: Record, change: Callable[[Obj], None]) -> Obj | None:
    """The object of a record with a change; None if that changes nothing."""
    obj = record.decode()
    change(obj)
    return None if obj == record.decode() else obj


class Objects:
    """Objects in their stored version, without kind and apiVersion, by group and plural."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        """A fresh copy, or None."""
        record = self._store.get(_table(group, plural), _key(namespace, name))
        return None if record is None else record.decode()

    def exists(self, group: str, plural: str, namespace: str, name: str) -> bool:
        return self._store.get(_table(group, plural), _key(namespace, name)) is not None

    def records(self, group: str, plural: str, namespace: str = "") -> Iterator[Record]:
        """In the order of their keys."""
        table = self._store.tables.get(_table(group, plural))
        if table is not None:
            records = table.records
            for key in table.keys(f"{namespace}/" if namespace else ""):
                yield records[key]

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterator[Obj]:
        return (record.decode() for record in self.records(group, plural, namespace))

    def create(self, group: str, plural: str, obj: Obj) -> Record | None:
        """Store a new object, with its identity; None if there is one already."""
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        system.fill(obj["metadata"], timestamp())
        try:
            return self._store.put(self._store.table(_table(group, plural)), obj, expected=0)
        except Exists:
            return None

    def update(
        self, group: str, plural: str, namespace: str, name: str, change: Callable[[Obj], Obj | None]
    ) -> Record | None:
        """Change an object; `change` may work in place or return another; nothing is written if nothing changed."""
        table = self._store.table(_table(group, plural))
        record = table.records.get(_key(namespace, name))
        if record is None:
            return None
        obj = record.decode()
        changed = change(obj) or obj
        changed["metadata"]["resourceVersion"] = str(record.revision)
        if changed == record.decode():
            return record
        return self._store.put(table, changed, expected=record.revision)

    async def update_aside(
        self, group: str, plural: str, namespace: str, name: str, change: Callable[[Obj], None]
    ) -> None:
        """As `update`, in place; a large object is changed beside the loop, and again if another write comes first."""
        table, key = self._store.table(_table(group, plural)), _key(namespace, name)
        while (record := table.records.get(key)) is not None:
            size = len(record.data)
            changed = await aside.run(size, _changed, record, change)
            if changed is None:
                return
            try:
                draft = await aside.run(size, draft_of, changed) if size >= aside.FROM else None
                self._store.put(table, changed, expected=record.revision, draft=draft)
                return
            except (Mismatch, Missing):
                continue

    def delete(self, group: str, plural: str, namespace: str, name: str) -> Record | None:
        """Remove an object at once, even with finalizers."""
        table, key = self._store.table(_table(group, plural)), _key(namespace, name)
        if key not in table.records:
            return None
        return self._store.remove(table, key, expected=None)
