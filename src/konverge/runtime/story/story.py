"""`manager.story`: the latest reconciles of a manager, by controller, object, and what they wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from konverge import clock
from konverge.client.call import WRITES
from konverge.objects.resource import Resource
from konverge.runtime.story.entry import Entry
from konverge.runtime.story.ring import Ring, StoryLimits

if TYPE_CHECKING:
    from konverge.runtime.story.model import Page, ReconcileStory

LIMIT = 100
"""Reconciles that are shown unless more are asked for."""


class Story:
    """What a manager's controllers did lately.

    for reconcile in manager.story.reconciles(kind="WebApp", name="shop"):
        print(reconcile)
    """

    def __init__(self, name: str, limits: StoryLimits | None = None) -> None:
        self._name = name
        self.limits = limits or StoryLimits()
        self._rings: dict[str, tuple[Resource, Ring, dict[Any, float]]] = {}

    def ring(self, controller: str, kind: Resource, running: dict[Any, float] | None = None) -> Ring:
        """Where a controller keeps its reconciles; `running` has those of now, with the time of their begin."""
        ring = Ring(self.limits)
        self._rings[controller] = kind, ring, {} if running is None else running
        return ring

    def drop(self, controller: str) -> None:
        """Forget the reconciles of a controller that has ended."""
        self._rings.pop(controller, None)

    @property
    def size(self) -> int:
        """The bytes that are kept alive, about."""
        return sum(ring.size for _, ring, _ in self._rings.values())

    def __len__(self) -> int:
        return sum(ring.count for _, ring, _ in self._rings.values())

    def reconciles(
        self, *, controller: str = "", kind: str = "", namespace: str = "", name: str = "", limit: int = LIMIT
    ) -> list[ReconcileStory]:
        """The latest first; with a kind and a name, those of the object and those that wrote it."""
        from konverge.runtime.story.render import reconcile

        epoch = clock.now() - clock.monotonic()
        chosen = self._matching(controller, kind, namespace, name)
        return [reconcile(entry, of, resource, epoch) for of, resource, entry in chosen[:limit]]

    def entries(self) -> list[tuple[str, Resource, Entry]]:
        """Controller, its kind, and what was noted, the latest first; `began` is the loop's time."""
        return self._matching("", "", "", "")

    def latest(self, kind: str, name: str, namespace: str = "") -> ReconcileStory | None:
        """The last reconcile of an object, or the last one that wrote it."""
        return next(iter(self.reconciles(kind=kind, namespace=namespace, name=name, limit=1)), None)

    def page(
        self, *, controller: str = "", kind: str = "", namespace: str = "", name: str = "", limit: int = LIMIT
    ) -> Page:
        """The same for programs, with what runs now."""
        from konverge.runtime.story.model import Page, Running
        from konverge.runtime.story.render import name_of, time_text

        now = clock.monotonic()
        running = [
            Running(controller=of, kind=resource.kind, namespace=space, name=named, seconds=round(now - began, 6))
            for of, resource, _, keys in self._of(controller)
            for (space, named), began in ((name_of(key), began) for key, began in keys.items())
            if _is(resource, kind) and namespace in ("", space) and name in ("", named)
        ]
        total = len(self._matching(controller, kind, namespace, name))
        return Page(
            manager=self._name,
            time=time_text(clock.now()),
            reconciles=self.reconciles(controller=controller, kind=kind, namespace=namespace, name=name, limit=limit),
            running=running,
            left_out=max(0, total - limit),
        )

    def json(self, **chosen: Any) -> bytes:
        """`page` as JSON."""
        return msgspec.json.encode(self.page(**chosen))

    def _of(self, controller: str) -> Iterator[tuple[str, Resource, Ring, dict[Any, float]]]:
        for of, (resource, ring, running) in self._rings.items():
            if controller in ("", of):
                yield of, resource, ring, running

    def _matching(self, controller: str, kind: str, namespace: str, name: str) -> list[tuple[str, Resource, Entry]]:
        chosen = [
            (of, resource, entry)
            for of, resource, ring, _ in self._of(controller)
            for entry in ring
            if _concerns(entry, resource, kind, namespace, name)
        ]
        return sorted(chosen, key=lambda parts: (parts[2].began, parts[2].number), reverse=True)


def _concerns(entry: Entry, resource: Resource, kind: str, namespace: str, name: str) -> bool:
    key = entry.key
    own = namespace in ("", getattr(key, "namespace", "")) and name in ("", getattr(key, "name", str(key)))
    if own and _is(resource, kind):
        return True
    if not (kind and name):
        return False
    return any(
        note.resource is not None
        and note.verb in WRITES
        and note.name == name
        and namespace in ("", note.namespace)
        and _is(note.resource, kind)
        for note in entry.calls
    )


def _is(resource: Resource, kind: str) -> bool:
    """Whether a resource is meant: by its kind or plural, in any case, with its group or without."""
    return not kind or kind.lower() in (
        resource.kind.lower(),
        resource.plural,
        resource.group_resource,
        f"{resource.kind}.{resource.group}".lower(),
    )
