"""The limits of the service, each with its default and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge.service.catalogue import Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Times are in seconds, sizes in bytes."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    body: int = 1 << 20
    """A resource may have 1.5 MiB in the API server's store; a wish for one is far smaller."""
    connections: int = 1000
    request_time: float = 30.0
    """For one exchange with the API server."""
    page: int = 100
    """Instances in one answer when the caller does not say how many."""
    largest_page: int = 500
    streams: int = 256
    """Open event streams in all. Each holds a watch at the API server."""
    streams_of_one: int = 16
    """Of one caller, so that nobody takes all of them."""
    stream_time: int = 300
    """A stream ends after this and is resumed: so a token that was taken back is found out soon."""
    heartbeat: float = 15.0
    """A stream is never silent for longer: proxies commonly cut what is silent for a minute."""
    stalled: float = 30.0
    """A reader that takes nothing for so long is cut off, and resumes from what it saw."""
    initial: int = 5000
    """A stream begins with at most so many instances; beyond that a namespace or a selector has to be named."""
