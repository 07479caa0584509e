"""The options of the service: the versions of Nacos that it offers, and its limits.

The administrator decides on the versions, for example those mirrored in a private registry. The default is the last
release of each line that the operator supports.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge.operators.nacos.versions import read_version
from konverge.service.models import Offer

REPOSITORY = "nacos/nacos-server"
RELEASES = ("2.0.4", "2.1.2", "2.2.3", "2.3.2", "2.4.3", "2.5.3", "3.0.3", "3.1.2", "3.2.3")
DEFAULT = "2.4.3"


class CatalogueError(ValueError):
    """The versions cannot be offered; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The versions that may be chosen by their number alone.

    >>> Catalogue(repository="harbor.example.com/nacos", releases=("2.0.4",), default="2.0.4").image("2.0.4")
    'harbor.example.com/nacos:v2.0.4'
    """

    repository: str = REPOSITORY
    releases: tuple[str, ...] = RELEASES
    default: str = DEFAULT

    def __post_init__(self) -> None:
        unknown = [text for text in self.releases if not read_version(text).known or text.startswith("v")]
        if unknown:
            raise CatalogueError(f"{', '.join(unknown)}: a version is three numbers, such as {DEFAULT}")
        if self.default not in self.releases:
            raise CatalogueError(f"the default version {self.default} is not among those offered")

    def offers(self) -> list[Offer]:
        """Newest first."""
        ordered = sorted(self.releases, key=read_version, reverse=True)
        return [
            Offer(version=version, image=self._image(version), default=version == self.default) for version in ordered
        ]

    def image(self, version: str) -> str | None:
        """The image of an offered version; None for any other."""
        return self._image(version) if version in self.releases else None

    def _image(self, version: str) -> str:
        return f"{self.repository}:v{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Times are in seconds, sizes in bytes."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    body: int = 1 << 20
    """A resource may have 1.5 MiB in the API server's store; a request for one is far smaller."""
    connections: int = 1000
    request_time: float = 30.0
    """For one exchange with the API server."""
    page: int = 100
    """Instances in one answer when the caller gives no limit."""
    largest_page: int = 500
    streams: int = 256
    """Open event streams of all callers. Each holds a watch at the API server."""
    streams_per_caller: int = 16
    """So that no caller takes all of them."""
    stream_time: int = 300
    """A stream ends after this and is resumed: so a revoked token is noticed soon."""
    heartbeat: float = 15.0
    """A stream is never silent for longer: proxies commonly cut what is silent for a minute."""
    stalled: float = 30.0
    """A reader that stalls for so long is cut off, and resumes after the last event that it saw."""
    initial: int = 5000
    """A stream begins with at most so many instances; with more, the caller has to name a namespace or a selector."""
