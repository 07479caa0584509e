"""A controller in one of several clusters: an engine whose contexts name the cluster."""

from __future__ import annotations

from typing import Any, TypeVar

from konverge.cache.record import Record
from konverge.objects.meta import Object
from konverge.runtime.clusters.access import OtherClusters
from konverge.runtime.context import Context
from konverge.runtime.engine import Engine
from konverge.runtime.result import Request
from konverge.runtime.story.entry import Entry

T = TypeVar("T", bound=Object)


class ClusterEngine(Engine[T]):
    """An engine whose reconciles know their cluster and the others."""

    def __init__(self, *args: Any, cluster: str, clusters: OtherClusters, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cluster = cluster
        self._clusters = clusters

    def context(self, key: Request, record: Record, entry: Entry) -> Context[T]:
        context = super().context(key, record, entry)
        context.cluster, context._clusters = self.cluster, self._clusters
        return context
