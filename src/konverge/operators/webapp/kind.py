"""What a WebApp is. The schema of its definition comes from here: the API server refuses what does not fit."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Column, Condition, CustomResource, Maximum, Minimum, MinLength, Model, Rule, Scale, Time

Phase = Literal["", "Pending", "Creating", "Running"]


class WebAppSpec(Model):
    """What the user asks for."""

    image: Annotated[str, MinLength(1)]
    """The image of the containers."""
    replicas: Annotated[int, Minimum(0)] = 1
    """How many pods run."""
    port: Annotated[int, Minimum(1), Maximum(65535)] = 80
    """The port at which the containers listen, and the Service."""
    env: dict[str, str] = {}
    """Environment variables of the containers."""


class WebAppStatus(Model):
    """What is."""

    phase: Phase = ""
    """The state in one word."""
    message: str = ""
    """What is wrong, or what is waited for."""
    observed_generation: int = 0
    """The generation of the spec that was acted upon."""
    ready_replicas: int = 0
    """How many pods are ready."""
    last_reconcile_time: Time | None = None
    """When something was last done for it."""
    conditions: list[Condition] = []
    """Ready and Synced."""


class WebApp(
    CustomResource[WebAppSpec, WebAppStatus],
    group="apps.konverge.dev",
    version="v1",
    short_names=["wa"],
    scale=Scale(status=".status.readyReplicas"),
    columns=[
        Column("Phase", ".status.phase"),
        Column("Ready", ".status.readyReplicas"),
        Column("Wanted", ".spec.replicas"),
        Column("Image", ".spec.image"),
        Column("Message", ".status.message", priority=1),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    # Its Service has its name, and a Service is a name in DNS: refused here, it need not fail there.
    rules=[Rule("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')", message="must be a DNS label")],
):
    """A web application: so many replicas of an image, reached at a port."""


def spec_changed(app: WebApp) -> bool:
    """Whether there is a change of the spec that was not acted upon yet. Writing the status never changes the
    generation."""
    return app.metadata.generation != app.status.observed_generation
