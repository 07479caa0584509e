"""Changes in other clusters that lead to requests of the home cluster: `Watches(ConfigMap, …, clusters="others")`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from konverge.cache.store import Change
from konverge.runtime.caches import SharedCaches
from konverge.runtime.declare import Controller
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.engine import Engine
from konverge.runtime.mapping import Deliver, WatchMapper, watch_mapper
from konverge.runtime.relations import Watches
from konverge.runtime.result import Request


def within_one_cluster(controller: Controller[Any]) -> Controller[Any]:
    """A controller with the watches of the cluster that it runs in."""
    if all(watch.clusters == "same" for watch in controller.watched):
        return controller
    return replace(controller, watches=[watch for watch in controller.watched if watch.clusters == "same"])


def across_clusters(controller: Controller[Any]) -> Sequence[Watches[Any]]:
    return [watch for watch in controller.watched if watch.clusters == "others"]


class Feeds:
    """What one other cluster feeds into the queues of the home cluster."""

    def __init__(self, caches: SharedCaches) -> None:
        self._caches = caches
        self._mappers: list[Deliver] = []

    def add(self, controller: Controller[Any], declared: DeclaredCaches, engine: Engine[Any]) -> None:
        """Watch here what a controller of the home cluster watches in others."""
        for watch in across_clusters(controller):
            informer = self._caches.watch(declared, controller, watch)
            mapper = watch_mapper(controller, watch, informer, declared, engine.enqueue)
            self._mappers.append(mapper)
            informer.add_handler(_handler(mapper))

    def stop(self) -> None:
        """Let go of the timers."""
        for mapper in self._mappers:
            if isinstance(mapper, WatchMapper):
                mapper.stop()


def _handler(mapper: Deliver) -> Any:
    def deliver(change: Change) -> None:
        mapper(change, None)  # a write of the home cluster's controller is no echo here

    return deliver


def check_feeds(controllers: Iterable[Controller[Any]]) -> None:
    """Refuse what could lead nowhere."""
    for controller in controllers:
        if controller.clusters != "home" and controller.key is not Request:
            raise ValueError(f"{controller.name} has key=…, and requests of several clusters are those of objects")
        if controller.clusters == "others" and across_clusters(controller):
            raise ValueError(
                f'{controller.name} does not run in the home cluster, where its watches with clusters="others" lead: '
                "leave that out, and each cluster is watched for itself"
            )
