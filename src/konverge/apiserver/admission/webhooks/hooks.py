"""The webhooks that are configured, in the order in which they are called; read again when a configuration changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.protocols import Backend

GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    id: str
    """Tells hooks of one name apart, in one configuration or in several."""
    spec: Obj

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def seconds(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)

    @property
    def allows_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def reinvoked(self) -> bool:
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


class Hooks:
    """All webhooks of one sort."""

    def __init__(self, server: Backend, plural: str) -> None:
        self._server = server
        self._plural = plural
        self._found: tuple[Hook, ...] | None = None
        server.store.subscribe(f"{GROUP}/{plural}", self._changed)

    def _changed(self, event: Any) -> None:
        self._found = None

    def all(self) -> tuple[Hook, ...]:
        """By the name of the configuration, then as they stand in it."""
        if self._found is None:
            self._found = tuple(
                Hook(spec.get("name", ""), f"{found['metadata']['name']}/{spec.get('name', '')}/{index}", spec)
                for found in self._server.objects.scan(GROUP, self._plural)
                for index, spec in enumerate(found.get("webhooks") or ())
            )
        return self._found
