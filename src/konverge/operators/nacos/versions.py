"""The version of Nacos in an image: ports, probes, authentication and the database's schema depend on it."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBERS = re.compile(r"^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.-].*)?$")


class NacosVersion(NamedTuple):
    """A version; all zeros when unknown."""

    major: int = 0
    minor: int = 0
    patch: int = 0

    @property
    def known(self) -> bool:
        return self.major > 0

    @property
    def line(self) -> str:
        """The line of releases, as `konverge.operators.nacos.database` takes it.

        >>> NacosVersion(2, 4, 3).line
        '2.4'
        """
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" if self.known else "unknown"


UNKNOWN = NacosVersion()
FIRST_WITHOUT_DEFAULT_USER = NacosVersion(2, 4, 0)
"""Earlier servers expect the user nacos in their tables; from this version on an administrator has to be created."""


def read_version(text: str) -> NacosVersion:
    """
    >>> read_version("v2.4.3-slim")
    NacosVersion(major=2, minor=4, patch=3)
    >>> read_version("latest").known
    False
    """
    match = _NUMBERS.match(text)
    return NacosVersion(*(int(part or 0) for part in match.groups())) if match else UNKNOWN


def version_of_image(image: str) -> NacosVersion:
    """By the tag; a registry's port is not a tag, and a digest has no version.

    >>> str(version_of_image("registry:5000/nacos/nacos-server:v2.0.4"))
    '2.0.4'
    >>> str(version_of_image("registry:5000/nacos"))
    'unknown'
    """
    last = image.partition("@")[0].rpartition("/")[2]
    return read_version(last.partition(":")[2])
