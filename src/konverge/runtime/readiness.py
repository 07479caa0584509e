"""What the health server says of a manager: before its start, while it runs, and while it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.runtime.manager import Manager


class Readiness:
    """The checks and remarks of one manager."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.started: set[str] = set()
        """Controllers that run."""
        self.waiting: dict[str, str] = {}
        """Controller -> the dependency that it waits for."""
        self.stopping = False
        manager.health.live["shutdown"] = lambda: "stopping" if self.stopping else ""
        manager.health.ready["caches"] = self._unsynced
        manager.health.ready["dependencies"] = self.unmet
        manager.health.remarks["quarantine"] = self._quarantined
        manager.health.remarks["sources"] = self._sources_down
        manager.health.remarks["tasks"] = self._tasks_down

    def serves_conversions(self) -> None:
        """Be ready before the caches are filled: to list objects that are stored in another version, the API server
        needs the conversion, which it reaches through a Service, which has the pods that are ready."""
        self._manager.health.advisory = frozenset(("caches", "dependencies", "sharding"))

    def unmet(self) -> str:
        return "; ".join(f"{name} waits for {dependency}" for name, dependency in self.waiting.items())

    def _unsynced(self) -> str:
        caches = getattr(self._manager, "caches", None)
        return "not synced" if caches is None or caches.unsynced else ""

    def _quarantined(self) -> str:
        caches = getattr(self._manager, "caches", None)
        informers = () if caches is None else caches.informers.values()
        return "; ".join(f"{informer.spec} {entry}" for informer in informers for entry in informer.quarantine)

    def _tasks_down(self) -> str:
        tasks = self._manager.numbers.tasks
        return "; ".join(f"{name}: {task.down}" for name, task in tasks.items() if task.down)

    def _sources_down(self) -> str:
        numbers = self._manager.numbers.controllers
        return "; ".join(f"{c.name} {source}: {why}" for c in numbers for source, why in c.sources_down.items())
