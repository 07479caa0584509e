"""What a manager declares to share its work with others like it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from konverge.runtime.election import Timing
from konverge.runtime.result import TransientError


class NotOurs(TransientError):
    """The key belongs to another replica (by now), so this one must not write for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Several processes work at once, each on its share of the keys.

    Manager(name="shop", sharding=Sharding(name="shop", replicas=3))

    `name` is that of the group: members are the processes with the same name and namespace. Each keeps a Lease there.
    """

    name: str
    namespace: str = "default"
    replicas: int = 2
    """For `konverge manifests`. Any number may run; keys are spread over those that do."""
    by: Literal["key", "namespace"] = "key"
    """What is spread: keys one by one, or all keys of a namespace together. By namespace, caches hold a replica's own
    share where the server can select it (the feature gate ShardedListAndWatch)."""
    identity: str = ""
    """Of this process; by default the pod or host, and a random part."""
    timing: Timing = field(default_factory=Timing)
    drain_timeout: float = 10.0
    """Seconds that a reconcile may go on when its key moves to another replica; then it is cancelled."""

    def __post_init__(self) -> None:
        if self.by not in ("key", "namespace"):
            raise ValueError(f"sharding by {self.by!r}: give by='key' or by='namespace'")
        if self.drain_timeout < 0 or self.replicas < 1:
            raise ValueError("sharding needs drain_timeout ≥ 0 and replicas ≥ 1")
