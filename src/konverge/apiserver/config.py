"""The settings of a server, each with its default and the reason for it.

Upstream: apiserver/pkg/server/config.go, apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from konverge.apiserver.storage import HistoryLimits

ISSUER = "https://kubernetes.default.svc.cluster.local"


class WatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes."""

    minimum: float = 1800.0  # upstream: MinRequestTimeout
    """A watch without a timeout ends after this, up to twice as long: so that not all clients reconnect at once."""
    bookmark_every: float = 60.0  # upstream: defaultBookmarkFrequency
    bookmark_before_end: float = 2.0  # upstream: nextBookmarkTime
    """A last bookmark shortly before the end lets a client resume where it was."""
    buffered: int = 8 * 1024 * 1024
    """The watch of a reader who is so far behind is ended: it will resume, and memory stays bounded."""
    pending: int = 20_000
    """Events kept for a watcher that is still sent its initial state."""


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which credentials are accepted, and what is allowed. Upstream: pkg/kubeapiserver/options."""

    issuer: str = ISSUER
    """Of the tokens of service accounts. The default is what most clusters use."""
    audiences: tuple[str, ...] = ()
    """Whom tokens are for, unless they say so themselves; empty means the issuer."""
    signing_key: Path | None = None
    """PEM of the private key that signs tokens; without it a key is generated and kept in the data directory."""
    verification_keys: tuple[Path, ...] = ()
    """PEM of further keys (private or public) whose tokens are accepted."""
    token_file: Path | None = None
    """Lines of `token,user,uid,"group1,group2"`, as kube-apiserver's --token-auth-file."""
    always_allow: bool = False
    """Every authenticated user may do everything, as with kube-apiserver's --authorization-mode=AlwaysAllow."""
    anonymous: bool = True
    """Requests without credentials are those of system:anonymous; otherwise (and with `always_allow`) refused."""

    @property
    def own_audiences(self) -> tuple[str, ...]:
        return self.audiences or (self.issuer,)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    history: HistoryLimits = msgspec.field(default_factory=HistoryLimits)
    watch: WatchLimits = msgspec.field(default_factory=WatchLimits)
    auth: AuthSettings = msgspec.field(default_factory=AuthSettings)
    request_timeout: float = 60.0  # upstream: RequestTimeout
    """For everything but watches; a request may ask for less by `?timeout=`."""
    seats: int = 600  # upstream: MaxRequestsInFlight, MaxMutatingRequestsInFlight
    """Requests that may wait for something at once; priority levels divide them among themselves."""
    service_cluster_ips: str = "10.96.0.0/16"
    marked_for: float = 0.0
    """Seconds between the two writes that delete an object without grace. Without nodes all pods are deleted like that,
    and a controller sees that a pod is being deleted only if it looks before the second write."""
    loopback_backends: bool = False
    """Whether endpoints may have loopback addresses. A real cluster refuses them; simulated pods have no others."""
    feature_gates: frozenset[str] = frozenset()
    """Alpha features to switch on, as kube-apiserver's --feature-gates: ShardedListAndWatch is known."""
    disabled_admission: frozenset[str] = frozenset()
    """Names of admission plugins to leave out, as kube-apiserver's --disable-admission-plugins."""

    @property
    def sharded(self) -> bool:
        """Whether lists and watches look at a shard selector."""
        return "ShardedListAndWatch" in self.feature_gates
