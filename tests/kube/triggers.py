"""Which objects a controller looks at again after a change of another object, without running it.

controller = Triggers(*deployment.controllers())
assert controller.of(old_pod, None, cached=[replicaset]) == {"deployment default/web"}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from konverge import Controller
from konverge.cache.lister import Lister
from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Meta, Record
from konverge.cache.store import Change, ChangeType, by_owner
from konverge.objects.codec import from_json, to_json
from konverge.objects.meta import Object
from konverge.runtime.predicates import When, bind


def record(obj: Object) -> Record:
    meta = obj.metadata
    return Record(to_json(obj), int(meta.resource_version or 0), meta.uid, meta.generation)


def change(old: Object | None, new: Object | None, *, initial: bool = False) -> Change:
    kind = ChangeType.ADDED if old is None else ChangeType.DELETED if new is None else ChangeType.UPDATED
    latest = new or old
    assert latest is not None
    key = Key(latest.metadata.namespace, latest.metadata.name)
    return Change(kind, key, record(old) if old else None, record(new) if new else None, initial)


class Triggers:
    def __init__(self, *controllers: Controller[Any]) -> None:
        self._controllers = controllers

    def of(
        self, old: Object | None, new: Object | None, *, cached: Iterable[Object] = (), initial: bool = False
    ) -> set[str]:
        """The objects, with the controller's name before: `endpoints default/web`."""
        changed, states = change(old, new, initial=initial), [state for state in (old, new) if state is not None]
        objects = list(cached) if new is None else [*cached, new]
        return {
            f"{controller.name} {request}"
            for controller in self._controllers
            for request in _requests(controller, changed, states, objects)
        }


def _requests(controller: Controller[Any], changed: Change, states: list[Any], objects: list[Object]) -> Iterator[str]:
    if isinstance(states[0], controller.kind) and _counts(controller.when, changed, controller.kind):
        yield str(changed.key)
    caches = Cached(controller, objects)
    for watch in controller.watched:
        if not isinstance(states[0], watch.kind) or not _counts(watch.when, changed, watch.kind):
            continue
        if watch.requests is None and watch.lookup is None:
            yield str(changed.key)
            continue
        for state in states:
            requests = watch.requests(state) if watch.requests else watch.lookup(state, caches) if watch.lookup else []
            yield from (str(Key(request.namespace, request.name)) for request in requests)


def _counts(when: When[Any] | None, changed: Change, kind: type[Any]) -> bool:
    return when is None or bind(when, lambda raw: from_json(kind, raw))(changed)


class Cached:
    """The caches of a controller, with these objects in them."""

    def __init__(self, controller: Controller[Any], objects: Iterable[Object]) -> None:
        self._objects = list(objects)
        self._controller = controller

    def lister(self, kind: type[Any]) -> Any:
        declared = self._controller
        if kind not in declared.kinds:
            return None
        own = declared.index_functions.get(kind, {})
        indexes = {"owner": by_owner, **own} if kind in [owned.kind for owned in declared.owned] else own
        objects = [obj for obj in self._objects if isinstance(obj, kind)]
        return Lister(_Informer(objects, indexes), lambda raw: from_json(kind, raw))  # type: ignore[arg-type]


class _Informer:
    readable = True

    def __init__(self, objects: list[Object], indexes: dict[str, Callable[[Record, Meta], Iterable[str]]]) -> None:
        self._records = {Key(obj.metadata.namespace, obj.metadata.name): record(obj) for obj in objects}
        self._indexes = indexes
        self.quarantine = Quarantine()

    def get(self, key: Key) -> Record | None:
        return self._records.get(key)

    def items(self, namespace: str | None) -> list[tuple[Key, Record]]:
        return [(key, item) for key, item in self._records.items() if namespace in (None, key.namespace)]

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        return [key for key, item in self._records.items() if value in self._indexes[index](item, item.meta)]
