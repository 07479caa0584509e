"""Everything that a process counts, in one place for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from konverge.cache.informer import Informer
from konverge.observe.metrics import ControllerNumbers
from konverge.observe.requests import RequestNumbers


@dataclass(slots=True)
class Numbers:
    """The numbers of one manager. `konverge.observe.exposition.render` makes them Prometheus text."""

    controllers: list[ControllerNumbers] = field(default_factory=list)
    informers: list[Informer] = field(default_factory=list)
    requests: RequestNumbers | None = None
    more: list[Callable[[], Iterable[Any]]] = field(default_factory=list)
    """What controllers count besides, as prometheus_client's metric families."""
    leaders: dict[str, Callable[[], bool]] = field(default_factory=dict)
    registry: Any = None
    """The prometheus_client registry, once somebody has scraped or added metrics."""
