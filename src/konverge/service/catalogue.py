"""The versions of Nacos that this service offers, and the images that hold them.

Whoever runs the service decides: a private registry and the versions that are mirrored there. The default is the last
release of each line that the operator knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge.operators.nacos.versions import read_version
from konverge.service.models import Offer

REPOSITORY = "nacos/nacos-server"
RELEASES = ("2.0.4", "2.1.2", "2.2.3", "2.3.2", "2.4.3", "2.5.3", "3.0.3", "3.1.2", "3.2.3")
DEFAULT = "2.4.3"


class CatalogueError(ValueError):
    """The versions cannot be offered; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What may be chosen by its number alone.

    >>> Catalogue(repository="harbor.example.com/nacos", releases=("2.0.4",), default="2.0.4").image("2.0.4")
    'harbor.example.com/nacos:v2.0.4'
    """

    repository: str = REPOSITORY
    releases: tuple[str, ...] = RELEASES
    default: str = DEFAULT

    def __post_init__(self) -> None:
        unknown = [one for one in self.releases if not read_version(one).known or one.startswith("v")]
        if unknown:
            raise CatalogueError(f"{', '.join(unknown)}: a version is three numbers, such as {DEFAULT}")
        if self.default not in self.releases:
            raise CatalogueError(f"the default version {self.default} is not among those offered")

    def offers(self) -> list[Offer]:
        """Newest first."""
        ordered = sorted(self.releases, key=read_version, reverse=True)
        return [Offer(version=one, image=self._image(one), default=one == self.default) for one in ordered]

    def image(self, version: str) -> str | None:
        """The image of an offered version; None for one that is not."""
        return self._image(version) if version in self.releases else None

    def _image(self, version: str) -> str:
        return f"{self.repository}:v{version}"
