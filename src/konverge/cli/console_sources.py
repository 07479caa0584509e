"""What only a cluster in this process can tell a console: the history of its store, and its reconciles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from konverge.apiserver.storage import Store
from konverge.apiserver.storage.store import HistoryLimits
from konverge.cli.operator_stories import StoryPlace, stories_of
from konverge.console.story.history import Change, Reconciles
from konverge.explain import Ref
from konverge.runtime import Manager
from konverge.runtime.story.model import ReconcileStory

HISTORY = HistoryLimits(seconds=3600.0)
"""An hour to look back on; the bounds of its memory stay what they are."""


class StoreHistory:
    """The changes that the embedded API server remembers."""

    def __init__(self, store: Store) -> None:
        store.keep_history(HISTORY)
        self._store = store

    @property
    def oldest(self) -> int:
        return max(self._store.compacted, 1)

    @property
    def newest(self) -> int:
        return self._store.durable

    def changes(self, since: int) -> Iterator[Change]:
        """What is on disk, the latest first."""
        for table, event in reversed(self._store.changes(since)):
            if event.revision > self._store.durable:
                continue
            group, _, plural = table.name.rpartition("/")
            shown = event.shown
            yield Change(
                event.revision,
                event.time,
                group,
                plural,
                shown.namespace,
                shown.name,
                event.old.data if event.old is not None else None,
                event.record.data if event.record is not None else None,
            )


def reconciles_of(managers: Callable[[], Iterable[Manager]], places: Callable[[], list[StoryPlace]]) -> Reconciles:
    """The reconciles of managers in this process, and of operators that run elsewhere."""

    async def reconciles(ref: Ref, most: int) -> list[ReconcileStory]:
        kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
        stories = [
            story
            for manager in managers()
            for story in manager.story.reconciles(kind=kind, namespace=ref.namespace, name=ref.name, limit=most)
        ]
        elsewhere, _ = await stories_of(places(), ref)
        return sorted([*stories, *elsewhere], key=lambda story: story.began, reverse=True)[:most]

    return reconciles
