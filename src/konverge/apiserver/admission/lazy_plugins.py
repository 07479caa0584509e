"""Plugins that are imported when there is something for them to do.

Policies bring a whole expression language along, webhooks an HTTP client; most servers have neither. What they go by is
stored in a table: as long as that is empty, a write passes by at the cost of one look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from konverge.apiserver.admission.plugin import Kind, Plugin, Step
from konverge.apiserver.request.admission import AdmissionRequest

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

_GROUP = "admissionregistration.k8s.io"


class OnDemand:
    """A plugin of one phase whose configuration is in `plural` of admissionregistration.k8s.io."""

    def __init__(
        self, store: Store, plural: str, phase: Literal["admit", "validate"], make: Callable[[], Plugin]
    ) -> None:
        self._table = store.table(f"{_GROUP}/{plural}")
        self._phase = phase
        self._make = make
        self._plugin: Plugin | None = None

    def admit(self, kind: Kind) -> Step | None:
        return self._step(kind) if self._phase == "admit" else None

    def validate(self, kind: Kind) -> Step | None:
        return self._step(kind) if self._phase == "validate" else None

    def _step(self, kind: Kind) -> Step:
        def step(request: AdmissionRequest) -> Awaitable[None] | None:
            if not self._table.records:
                return None
            if self._plugin is None:
                self._plugin = self._make()
            found = self._plugin.admit(kind) if self._phase == "admit" else self._plugin.validate(kind)
            return None if found is None else found(request)

        return step
