"""The settings of a server, each with its default and the reason for it.

Upstream: apiserver/pkg/server/config.go, apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

import msgspec

from konverge.apiserver.auth.settings import AuthSettings
from konverge.apiserver.storage import HistoryLimits


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


class Config(msgspec.Struct, frozen=True, kw_only=True):
    history: HistoryLimits = msgspec.field(default_factory=HistoryLimits)
    watch: WatchLimits = msgspec.field(default_factory=WatchLimits)
    auth: AuthSettings = msgspec.field(default_factory=AuthSettings)
    request_timeout: float = 60.0  # upstream: RequestTimeout
    """For everything but watches; a request may ask for less by `?timeout=`."""
    service_cluster_ips: str = "10.96.0.0/16"
    loopback_backends: bool = False
    """Whether endpoints may have loopback addresses. A real cluster refuses them; simulated pods have no others."""
    disabled_admission: frozenset[str] = frozenset()
    """Names of admission plugins to leave out, as kube-apiserver's --disable-admission-plugins."""
