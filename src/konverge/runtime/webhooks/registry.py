"""What a manager serves to the API server: webhooks by their paths, and the limits within which they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from konverge.objects.meta import Object
    from konverge.runtime.webhooks.places import Place

PORT = 9443
"""Upstream: DefaultPort (controller-runtime's pkg/webhook)."""


class Webhook(ABC):
    """One path: reviews in, reviews out, as JSON."""

    path: str
    """Begins with a slash; no two webhooks of a manager have the same."""
    definition: str = ""
    """For conversions: the name of the CustomResourceDefinition whose objects it converts. Its caBundle is kept."""
    kinds: tuple[type[Object], ...] = ()
    """The kinds that it is about; their definitions have to be installed."""

    waits = True
    """Whether an answer may have to wait for something: then it has a time limit and a place among those at work."""

    @abstractmethod
    async def answer(self, review: bytes) -> bytes:
        """The answer to an AdmissionReview or ConversionReview. What it raises becomes a 500 (see `BadReview`)."""


class BadReview(ValueError):
    """The request is no review that this webhook understands: a 400, with this text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """The webhooks of a manager, and how they are served.

    manager = Manager(webhooks=Webhooks(place=InCluster(service="pools-webhook", namespace="pools-system")))
    manager.add_webhook(check_pool)
    """

    place: Place | None = None
    """Where the API server reaches them. None: on this machine, with configurations that are removed at the end."""
    max_in_flight: int = 256
    """Reviews at work at once; others wait, within their time limit."""
    max_body: int = 7 * 1024 * 1024
    """Bytes of a review: two objects of 3 MB and what is around them. Upstream: maxRequestSize
    (pkg/webhook/admission/http.go)."""
    shutdown_delay: float = 5.0
    """Seconds for which they are still served after the end was asked for: endpoints are removed with a delay. Not used
    where there is no Service."""
    routes: dict[str, Webhook] = field(default_factory=dict)

    def add(self, webhook: Webhook) -> Self:
        """Serve one more. Raises ValueError when its path is taken."""
        if not webhook.path.startswith("/"):
            raise ValueError(f"the path of a webhook begins with a slash, not {webhook.path!r}")
        if webhook.path in self.routes:
            raise ValueError(f"there is already a webhook at {webhook.path}; give this one a path=…")
        self.routes[webhook.path] = webhook
        return self

    def add_all(self, webhooks: Iterable[Webhook]) -> Self:
        for webhook in webhooks:
            self.add(webhook)
        return self

    @property
    def definitions(self) -> list[str]:
        """The definitions whose conversion is served here."""
        return sorted({webhook.definition for webhook in self.routes.values() if webhook.definition})
