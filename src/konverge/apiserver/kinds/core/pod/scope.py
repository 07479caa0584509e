"""What the rules of a pod's parts need of the pod around them (`Report.scope`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class PodScope:  # upstream: PodValidationOptions
    """One for each spec that is checked."""

    is_pod: bool = False
    """A Pod, rather than a template of one: more is demanded of it."""
    name: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    grace_period: int | None = None
    restart_policy: str = ""
    host_users: bool = True
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The valid volumes by name; filled while they are checked, before the containers that mount them."""
    claims: frozenset[str] = frozenset()


def pod_scope(spec: dict[str, Any], metadata: dict[str, Any], *, is_pod: bool) -> PodScope:
    """The scope of a pod spec."""
    return PodScope(
        is_pod=is_pod,
        name=metadata.get("name") or "",
        annotations=metadata.get("annotations") or {},
        spec=spec,
        grace_period=spec.get("terminationGracePeriodSeconds"),
        restart_policy=spec.get("restartPolicy") or "",
        host_users=spec.get("hostUsers") is not False,
        claims=frozenset(claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")),
    )


# upstream: VisitContainersWithPath (pkg/apis/core/pods)
def containers_of(spec: dict[str, Any], path: str) -> list[tuple[dict[str, Any], str]]:
    """Every container of a pod with its path: init containers first, as the API visits them."""
    return [
        (container, f"{path}.{kind}[{index}]")
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for index, container in enumerate(spec.get(kind) or ())
    ]
